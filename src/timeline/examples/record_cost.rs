//! Measures what an event of a timeline costs: `cargo run --release -p ntbring-timeline --example record_cost [DIR]`,
//! with the directory in which the part is created (the one for temporary files by default).

use ntbring_timeline::{begin, called, ended, forwarded, received, sent, start, stop, Calls, Job, Message, Way};
use std::error::Error;
use std::ffi::CStr;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Events of a round: so few that other processes interrupt few rounds.
const EVENTS: u32 = 2000;
/// Number of rounds: all together record more than a part holds, so that some are the first in their memory.
const ROUNDS: usize = 301;

/// Returns the smallest and the median time of an event in ns, over all rounds.
fn measure(mut round: impl FnMut()) -> (f64, f64) {
    let mut times = [0.0; ROUNDS];
    for time in &mut times {
        let before = Instant::now();
        round();
        *time = before.elapsed().as_nanos() as f64 / f64::from(EVENTS);
    }
    times.sort_by(f64::total_cmp);
    (times[0], times[ROUNDS / 2])
}

fn message(number: u32) {
    if ntbring_timeline::is_on() {
        let m = Message { peer: 1, vci: 0, handler: 63, way: Way::Packed, bytes: 8, tag: 7, number };
        if number.is_multiple_of(2) {
            sent(begin(), black_box(m))
        } else {
            received(black_box(m))
        }
    }
    black_box(number);
}

/// Calls a function, as MPICH's functions do; `skips`: its calls are known not to be recorded.
fn call(name: &'static CStr, skips: &mut bool, work: impl FnOnce()) {
    // SAFETY: a constant string.
    let from = if ntbring_timeline::is_on() && !*skips { unsafe { called(name.as_ptr()) } } else { 0 };
    *skips = ntbring_timeline::is_on() && from == 0;
    work();
    if from != 0 {
        // SAFETY: a constant string.
        unsafe { ended(name.as_ptr(), from) };
    }
}

fn messages() {
    (0..EVENTS).for_each(message);
}

fn sends() {
    let mut skips = false;
    (0..EVENTS).for_each(|number| call(c"internal_Send", &mut skips, || message(number)));
}

fn collectives() {
    (0..EVENTS).for_each(|number| call(c"internal_Barrier", &mut false, || _ = black_box(number)));
}

fn hops() {
    for number in 0..EVENTS {
        if ntbring_timeline::is_on() {
            forwarded(black_box(number), 2, 64, true);
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let file = dir.join(format!("record_cost.{}", std::process::id()));
    let show = |what: &str, (least, median): (f64, f64)| println!("{what:32} {median:6.1} ns (at least {least:.1})");
    show("message and its call, off", measure(sends));
    let of = |calls| Job { file: &file, events: 1 << 18, job: 1, rank: 0, ranks: 1, host: 0, tagged: u64::MAX, calls };
    start(&of(Calls::Coarse))?;
    show("message and its call", measure(sends));
    show("hop", measure(hops));
    show("collective", measure(collectives));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                hops();
            }
        });
        show("message, another thread records", measure(messages));
        over.store(true, Ordering::Relaxed);
    });
    finish()?;
    start(&of(Calls::All))?;
    show("message and its call, all calls", measure(sends));
    finish()
}

fn finish() -> Result<(), Box<dyn Error>> {
    let stopped = stop().ok_or("it has recorded")?;
    std::fs::remove_file(format!("{}.0.part", stopped.file.display()))?;
    Ok(())
}
