//! Waiting until memory of this PE changes.

use super::Pes;
use crate::symmetric::Memory;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Looks at the memory between two polls of the ring: if no other process wants this processor, and if one does.
const LOOKS: [u32; 2] = [32, 4];
/// Rounds of looks between two yields, likewise.
const ROUNDS: [u32; 2] = [32, 1];
/// Yields before a sleep, likewise.
const YIELDS: [u32; 2] = [100, 100];
/// A yield that takes longer than this has let another process run.
const SWITCHED: Duration = Duration::from_nanos(1500);
/// Rounds between two polls of the ring if all PEs are near, when only failures can arrive.
const POLL_EVERY: u32 = 256;
/// Longest sleep, microseconds: stores through `shmem_ptr` wake no thread.
const SLEEP_US: u32 = 1000;

/// True while other processes want the processors on which this one waits.
static OVERSUBSCRIBED: AtomicBool = AtomicBool::new(false);

/// Yields, and notices from the time that it takes whether another process wants the processor.
fn give_way() {
    let before = Instant::now();
    std::thread::yield_now();
    OVERSUBSCRIBED.store(before.elapsed() > SWITCHED, Ordering::Relaxed);
}

/// Waits until a condition on memory of this PE holds: looks, then yields, then sleeps until the memory changes.
#[inline(always)]
pub fn until(pes: &Pes, memory: Memory, mut holds: impl FnMut() -> bool) {
    if !holds() {
        keep_waiting(pes, memory, &mut holds);
    }
}

#[cold]
#[inline(never)]
fn keep_waiting(pes: &Pes, memory: Memory, holds: &mut dyn FnMut() -> bool) {
    let (mut rounds, mut yields) = (0u32, 0);
    loop {
        let oversubscribed = usize::from(OVERSUBSCRIBED.load(Ordering::Relaxed));
        for _ in 0..LOOKS[oversubscribed] {
            if holds() {
                return;
            }
            std::hint::spin_loop();
        }
        rounds += 1;
        if (pes.link.has_far || rounds % POLL_EVERY == 0) && pes.link.poll() {
            continue;
        }
        if rounds % ROUNDS[oversubscribed] != 0 {
            continue;
        }
        if yields < YIELDS[oversubscribed] {
            yields += 1;
            give_way();
            continue;
        }
        pes.link.rest();
        pes.sleepers.tell(&pes.peers, &pes.written, memory, || pes.segment(memory).sleep(SLEEP_US, &mut || holds()));
        pes.link.poll();
    }
}

/// To be called when a test of memory of this PE has failed, which the program may repeat: polls now and then, and lets
/// other processes run if they want to.
#[cold]
pub fn has_failed(pes: &Pes) {
    thread_local!(static FAILED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) });
    let failed = FAILED.with(|failed| failed.replace(failed.get().wrapping_add(1)));
    if failed.is_multiple_of(ROUNDS[0]) {
        pes.link.poll();
        give_way();
    } else if OVERSUBSCRIBED.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
}
