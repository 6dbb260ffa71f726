//! Rings of hosts with modelled adapters.

use super::common::models::{Model, ModelRing};
use super::common::ring::try_run_over;
use super::*;
use ntbring_ntb::fabric::Windows;
use ntbring_ntb::{PortList, Shortcuts};
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
    messages_arrive(Model::Skx);
}

#[test]
fn messages_of_all_kinds_arrive_over_memory_that_machines_share() {
    messages_arrive(Model::Ivshmem);
}

fn messages_arrive(model: Model) {
    for layout in [Layout::blocks(&[1, 1]), Layout::blocks(&[2, 1, 2]), Layout::blocks(&[1, 2, 1, 1, 1])] {
        let ring = ModelRing::new(model, layout.hosts, 1 << 20);
        for reliability in [Reliability::Off, Reliability::Retry] {
            let settings = settings_of(&layout).with(|s| s.ring.reliability = reliability);
            assert_eq!(failures(&layout, &ring, &settings), [""; 0], "{layout:?}, {reliability}");
        }
        ring.check();
    }
}

#[test]
fn messages_arrive_over_the_adapters_of_every_chip() {
    let layout = Layout::blocks(&[1, 1, 1]);
    for model in Model::ALL {
        let ring = ModelRing::new(model, layout.hosts, 1 << 20);
        for reliability in [Reliability::Off, Reliability::Retry] {
            let settings = settings_of(&layout).with(|s| s.ring.reliability = reliability);
            assert_eq!(failures(&layout, &ring, &settings), [""; 0], "{model:?}, {reliability}");
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
    [Model::Skx, Model::Ivshmem].into_iter().for_each(jobs_share);
}

fn jobs_share(model: Model) {
    let layout = Layout::blocks(&[1, 1, 1]);
    let ring = ModelRing::new(model, 3, 1 << 20);
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

/// Runs a job of one rank on each of some hosts of a network, the way that a ring of just these hosts would run.
fn failures_on(ring: &ModelRing, hosts: &[usize], reliability: Reliability) -> Vec<String> {
    failures_with(ring, hosts, |s| s.ring.reliability = reliability)
}

/// As [`failures_on`], with other settings.
fn failures_with(ring: &ModelRing, hosts: &[usize], change: impl FnOnce(&mut Settings)) -> Vec<String> {
    let layout = Layout::blocks(&vec![1; hosts.len()]);
    let settings = settings_of(&layout).with(change);
    let plan = all_kinds(7, 20, 30_000);
    let body = |rank: &mut Rank| exchange(rank, 7, &plan).map(drop);
    let results = try_run_over(&layout, Some(&|host| ring.backend(hosts[host])), |_| settings.clone(), body);
    results.into_iter().filter_map(Result::err).collect()
}

#[test]
fn a_job_uses_a_part_of_the_ring() {
    [Model::Skx, Model::Ivshmem].into_iter().for_each(uses_a_part);
}

fn uses_a_part(model: Model) {
    let ring = ModelRing::new(model, 4, 1 << 20);
    let free = ring.free();
    for hosts in [&[0, 2][..], &[3, 1], &[0, 1, 3], &[1, 2]] {
        for reliability in [Reliability::Off, Reliability::Retry] {
            assert_eq!(failures_on(&ring, hosts, reliability), [""; 0], "{hosts:?}, {reliability}");
        }
    }
    // Two jobs at once, on hosts that they share and on hosts that they do not.
    std::thread::scope(|scope| {
        for hosts in [&[0, 2][..], &[1, 3], &[0, 1, 2, 3]] {
            let ring = &ring;
            scope.spawn(move || assert_eq!(failures_on(ring, hosts, Reliability::Off), [""; 0], "{hosts:?}"));
        }
    });
    let start = Instant::now();
    while ring.free() != free {
        assert!(start.elapsed() < Duration::from_secs(20), "{} bytes are free, {free} at first", ring.free());
        std::thread::sleep(Duration::from_millis(5));
    }
    ring.check();
}

#[test]
fn the_order_of_the_hosts_need_not_be_that_of_the_cabling() {
    for model in [Model::Skx, Model::Ivshmem] {
        let ring = ModelRing::new(model, 4, 1 << 20);
        assert_eq!(failures_on(&ring, &[0, 2, 1, 3], Reliability::Off), [""; 0], "{model:?}");
        ring.check();
    }
}

#[test]
fn any_cables_that_connect_the_hosts_make_a_ring() {
    [Model::Skx, Model::Ivshmem].into_iter().for_each(connects_by_any_cables);
}

fn connects_by_any_cables(model: Model) {
    // Two hosts with one adapter each; two whose cables are crossed; a chain; a star.
    for (hosts, cables) in [
        (2, &[[(0, 0), (1, 0)]][..]),
        (2, &[[(0, 0), (1, 0)], [(0, 1), (1, 1)]]),
        (3, &[[(0, 1), (1, 0)], [(1, 1), (2, 0)]]),
        (4, &[[(0, 0), (1, 0)], [(0, 1), (2, 0)], [(0, 2), (3, 1)]]),
    ] {
        let ring = ModelRing::cabled(model, hosts, 1 << 20, cables);
        let all: Vec<usize> = (0..hosts).collect();
        for reliability in [Reliability::Off, Reliability::Retry] {
            assert_eq!(failures_on(&ring, &all, reliability), [""; 0], "{model:?}, {cables:?}, {reliability}");
        }
        ring.check();
    }
}

#[test]
fn two_ports_of_a_job_share_a_window_of_the_default_size() {
    // The third host is gone, so both neighbours of each of the others are reached by one cable.
    let ring = ModelRing::new(Model::Skx, 3, 1 << 20);
    [1, 2].into_iter().for_each(|cable: usize| ring.cables[cable].lock().set_cable(false));
    for hosts in [&[0, 1][..], &[1, 0]] {
        assert_eq!(failures_with(&ring, hosts, |s| s.ring.window = None), [""; 0], "{hosts:?}");
    }
    ring.check();
}

#[test]
fn jobs_of_the_default_size_relay_for_each_other_over_a_chain() {
    // All circuits between two hosts pass the same cables, so a window holds both slices of one job and the lanes of the
    // other.
    let ring = ModelRing::new(Model::Skx, 4, 4 << 20);
    ring.cables[3].lock().set_cable(false);
    std::thread::scope(|scope| {
        for hosts in [&[0, 2][..], &[1, 3]] {
            let ring = &ring;
            scope.spawn(move || assert_eq!(failures_with(ring, hosts, |s| s.ring.window = None), [""; 0], "{hosts:?}"));
        }
    });
    ring.check();
}

#[test]
fn a_job_waits_for_the_room_of_one_that_is_ending() {
    let ring = ModelRing::new(Model::Skx, 2, 1 << 20);
    let host = ring.adapters(0);
    let windows = Windows { bytes: 600 << 10, accounts: false, ports: PortList::default() };
    let first = host.allot(windows, 0, &|| false).unwrap();
    let refused = host.allot(windows, 0, &|| false).err().expect("there is no room").to_string();
    assert!(refused.contains("jobs and circuits have 618496 bytes in 1 slices"), "{refused}");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            drop(first);
        });
        assert!(host.allot(windows, 0, &|| true).is_ok());
    });
}

#[test]
fn circuits_survive_cables_that_are_pulled() {
    let ring = ModelRing::new(Model::Skx, 4, 1 << 20);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for times in 0.. {
                if over.load(Ordering::Relaxed) {
                    break;
                }
                let cable = &ring.cables[times % ring.cables.len()];
                std::thread::sleep(Duration::from_millis(150));
                cable.lock().set_cable(false);
                std::thread::sleep(Duration::from_millis(times as u64 % 4 * 10));
                cable.lock().set_cable(true);
            }
        });
        let failures: Vec<_> = (0..3).map(|_| failures_on(&ring, &[0, 2], Reliability::Retry)).collect();
        over.store(true, Ordering::Relaxed);
        assert_eq!(failures, vec![vec![""; 0]; 3]);
    });
}

#[test]
fn a_host_that_no_cable_reaches_is_named() {
    let ring = ModelRing::cabled(Model::Skx, 4, 1 << 20, &[[(0, 1), (1, 0)], [(2, 1), (3, 0)]]);
    let failures = failures_on(&ring, &[0, 1, 2], Reliability::Off);
    assert!(failures.iter().any(|failure| failure.contains("no cables lead to host")), "{failures:?}");
}
