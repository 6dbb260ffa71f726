//! Rings of adapters with few capabilities: four scratchpads, few doorbells and vectors, large alignments of windows.

use super::common::ring::try_run_over;
use super::*;
use ntbring_ntb::narrow::Narrow;
use ntbring_ntb::settings::Device;
use ntbring_ntb::{PortCaps, Shortcuts};
use ntbring_queue::Reliability;
use std::sync::Arc;

fn caps(change: impl FnOnce(&mut PortCaps)) -> PortCaps {
    let mut caps = PortCaps::SOFTWARE;
    (caps.scratchpads, caps.doorbells, caps.vectors) = (4, 2, 2);
    (caps.window_align, caps.window_size_align) = (64 << 10, 64 << 10);
    change(&mut caps);
    caps
}

fn narrow(layout: &Layout) -> Settings {
    tiny(layout).with(|s| {
        s.links.device = Device::Loopback;
        s.endpoint.spin = Some(0);
        s.endpoint.yields = 0;
    })
}

/// Sends messages between all ranks over such adapters. Returns the errors.
fn failures(layout: &Layout, caps: PortCaps, settings: &Settings) -> Vec<String> {
    let seed = layout.size() as u64;
    let plan = all_kinds(seed, 20, 30_000);
    let body = |rank: &mut Rank| exchange(rank, seed, &plan).map(drop);
    let results = try_run_over(layout, Some(&|_| Arc::new(Narrow(caps))), |_| settings.clone(), body);
    results.into_iter().filter_map(Result::err).collect()
}

#[test]
fn few_doorbells_are_shared_by_all_ranks_and_threads() {
    for layout in [Layout::blocks(&[3, 2]), Layout::blocks(&[4, 1, 2, 3])] {
        for doorbells in [1, 2, 3] {
            let caps = caps(|caps| (caps.doorbells, caps.vectors) = (16, doorbells));
            assert_eq!(failures(&layout, caps, &narrow(&layout)), [""; 0], "{layout:?}, {doorbells}");
            let caps = self::caps(|caps| (caps.doorbells, caps.vectors) = (doorbells, doorbells));
            let apart = narrow(&layout).with(|s| s.links.shortcuts = Shortcuts::NONE);
            assert_eq!(failures(&layout, caps, &apart), [""; 0], "{layout:?}, {doorbells}, no shortcuts");
        }
    }
}

#[test]
fn checked_links_need_no_more() {
    let layout = Layout::blocks(&[2, 1, 2, 1]);
    for reliability in [Reliability::Detect, Reliability::Retry] {
        let settings = narrow(&layout).with(|s| s.ring.reliability = reliability);
        assert_eq!(failures(&layout, caps(|_| {}), &settings), [""; 0], "{reliability}");
    }
}

#[test]
fn windows_keep_to_alignment_and_largest_size() {
    let layout = Layout::blocks(&[2, 2, 1, 1]);
    let default = narrow(&layout).with(|s| s.ring.window = None);
    for (align, most) in [(1 << 20, 1 << 40), (128 << 10, 300 << 10)] {
        let caps = caps(|caps| {
            (caps.window_align, caps.window_size_align, caps.window_max) = (align, align, most);
            caps.max_transfer = Some(512);
        });
        assert_eq!(failures(&layout, caps, &default), [""; 0], "{align} {most}");
    }
}

#[test]
fn adapters_that_are_not_enough_are_refused_with_the_reason() {
    let layout = Layout::blocks(&[1, 1, 1]);
    for (caps, why) in [
        (caps(|caps| caps.scratchpads = 3), "they have 3 scratchpads, 4 are needed"),
        (caps(|caps| caps.vectors = 0), "no doorbell with an interrupt vector"),
        (caps(|caps| caps.window_max = 64 << 10), "NTBRING_WINDOW"),
    ] {
        let settings = narrow(&layout).with(|s| s.ring.window = Some(1 << 20));
        let failures = failures(&layout, caps, &settings);
        assert!(failures.iter().any(|failure| failure.contains(why)), "{failures:?}");
    }
}
