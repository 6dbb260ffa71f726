//! Rings of hosts with modelled adapters.

use super::common::models::{Model, ModelRing};
use super::common::ring::try_run_over;
use super::*;
use ntbring_ntb::Shortcuts;
use ntbring_queue::Reliability;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

fn settings_of(layout: &Layout) -> Settings {
    tiny(layout).with(|s| {
        s.links.shortcuts = Shortcuts::NONE;
        s.endpoint.spin = Some(0);
        s.endpoint.yields = 0;
    })
}

/// Sends messages between all ranks over a ring of modelled adapters. Returns the errors.
fn failures(layout: &Layout, ring: &ModelRing, settings: &Settings) -> Vec<String> {
    let seed = layout.size() as u64;
    let plan = all_kinds(seed, 20, 30_000);
    let body = |rank: &mut Rank| exchange(rank, seed, &plan).map(drop);
    let results = try_run_over(layout, Some(&|host| ring.backend(host)), |_| settings.clone(), body);
    results.into_iter().filter_map(Result::err).collect()
}

#[test]
fn messages_of_all_kinds_arrive_over_modelled_adapters() {
    for layout in [Layout::blocks(&[1, 1]), Layout::blocks(&[2, 1, 2]), Layout::blocks(&[1, 2, 1, 1, 1])] {
        let ring = ModelRing::new(Model::Skx, layout.hosts, 1 << 20);
        for reliability in [Reliability::Off, Reliability::Retry] {
            let settings = settings_of(&layout).with(|s| s.ring.reliability = reliability);
            assert_eq!(failures(&layout, &ring, &settings), [""; 0], "{layout:?}, {reliability}");
        }
        ring.check();
    }
}

#[test]
fn nothing_is_lost_while_cables_are_pulled_and_plugged() {
    let layout = Layout::blocks(&[1, 2, 1]);
    let ring = ModelRing::new(Model::Skx, 3, 1 << 20);
    let settings = settings_of(&layout).with(|s| s.ring.reliability = Reliability::Retry);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let flapping = scope.spawn(|| {
            // The job has joined by then, or joins over links that come and go.
            let mut times = 0;
            while !over.load(Ordering::Relaxed) {
                let cable = &ring.cables[times % ring.cables.len()];
                std::thread::sleep(Duration::from_millis(60));
                cable.lock().set_cable(false);
                std::thread::sleep(Duration::from_millis(times as u64 % 4 * 10));
                cable.lock().set_cable(true);
                times += 1;
            }
            times
        });
        let seed = 5;
        let plan = all_kinds(seed, 300, 30_000);
        let body = |rank: &mut Rank| exchange(rank, seed, &plan).map(drop);
        let results = try_run_over(&layout, Some(&|host| ring.backend(host)), |_| settings.clone(), body);
        over.store(true, Ordering::Relaxed);
        let failures: Vec<String> = results.into_iter().filter_map(Result::err).collect();
        assert_eq!(failures, [""; 0]);
        println!("cables were pulled {} times", flapping.join().unwrap());
    });
}

#[test]
fn jobs_share_the_windows_and_leave_nothing() {
    let layout = Layout::blocks(&[1, 1, 1]);
    let ring = ModelRing::new(Model::Skx, 3, 1 << 20);
    let free = ring.free();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(failures(&layout, &ring, &settings_of(&layout)), [""; 0]));
        }
    });
    // The neighbours confirm the end of each slice.
    let start = Instant::now();
    while ring.free() != free {
        assert!(start.elapsed() < Duration::from_secs(10), "{} bytes are free, {free} at first", ring.free());
        std::thread::sleep(Duration::from_millis(5));
    }
    let large = settings_of(&layout).with(|s| s.ring.window = Some(2 << 20));
    let failures = failures(&layout, &ring, &large);
    assert!(failures.iter().any(|failure| failure.contains("NTBRING_WINDOW")), "{failures:?}");
}

#[test]
fn hosts_in_another_order_than_the_cabling_are_refused() {
    let layout = Layout::blocks(&[1, 1, 1]);
    let ring = ModelRing::new(Model::Skx, 3, 1 << 20);
    let settings = settings_of(&layout);
    let results = try_run_over(&layout, Some(&|host| ring.backend([0, 2, 1][host])), |_| settings.clone(), |_| Ok(()));
    let failures: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    assert!(failures.iter().any(|failure| failure.contains("is not that of the cabling")), "{failures:?}");
}
