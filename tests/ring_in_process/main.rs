//! A whole ring of hosts in one process, ranks as threads: messages between all of them.

mod allgathers;
mod at_once;
mod checked;
mod classes;
#[path = "../common/mod.rs"]
mod common;
mod counters;
mod devices;
mod direct_lanes;
mod dpm_messages;
mod faults;
mod flow_control;
mod forwarder_threads;
mod healing;
mod joining;
mod many_hosts;
mod modelled;
mod narrow;
mod outages;
mod peer_losses;
mod progress_threads;
mod served;
mod turns;
mod two_jobs;
mod waiting;
mod written;

use common::ring::{run, run_each, try_to_join, unexpected, Layout, Rank};
use common::traffic::{exchange, Plan, Shape, Traffic};
use ntbring_endpoint::wire::Head;
use ntbring_endpoint::Settings;
use ntbring_endpoint::{EndpointError, Message, Sent, Token};
use ntbring_ntb::timing::Model;
use ntbring_ntb::Side;
use ntbring_queue::{lines_for, Tag, LINE};
use ntbring_ring::handshake::HandshakeError;
use ntbring_ring::join::{Candidate, Card, JoinError};
use ntbring_ring::layout::WindowLayout;
use ntbring_zerocopy::Payload;
use ntbring_zerocopy::SingleCopy;
use ntbring_zerocopy::SplitCopy;
use std::path::Path;
use std::time::Duration;

/// MPICH's header of an ordinary message.
const HEADER: usize = 48;

fn settings() -> Settings {
    Settings::default().with(|s| s.ring.connect_timeout = Duration::from_secs(30))
}

/// Returns settings with the smallest windows that such hosts can use, if headers have up to 984 bytes and links may
/// retransmit: lanes of 4608 bytes.
fn tiny(layout: &Layout) -> Settings {
    let mut window = 64 << 10;
    let fits = |window| {
        let t = layout.topology();
        (0..layout.hosts).all(|h| {
            Side::BOTH
                .iter()
                .all(|&side| WindowLayout::new(&t, h, side, window, true).is_ok_and(|plan| plan.lane_bytes() >= 4608))
        })
    };
    while !fits(window) {
        window += 4096;
    }
    settings().with(|s| s.ring.window = Some(window))
}

/// Returns a plan of messages of all kinds between all pairs, different for each. Headers have at most `header_max`
/// bytes.
fn all_kinds(seed: u64, messages: usize, largest: usize) -> impl Fn(u32, u32) -> Vec<Shape> {
    move |src, dst| {
        let mut rng = fastrand::Rng::with_seed(seed ^ u64::from(src) << 20 ^ u64::from(dst) << 40);
        let mut shapes = Vec::new();
        for _ in 0..messages {
            let header = match rng.u8(..8) {
                0 => 0,
                1 => rng.usize(..=984),
                2 => rng.usize(..=120),
                _ => HEADER,
            };
            let payload = match rng.u8(..12) {
                0 => 0,
                1 => rng.usize(..=largest),
                // Sizes near the limits of a cache line, of a packed message, and of a chunk.
                2 => [7, 8, 9, 63, 64, 65][rng.usize(..6)],
                3 => ((16usize << 10) - HEADER).saturating_add_signed(rng.i8(..).into()),
                4 => (16usize << 10).saturating_add_signed(rng.i8(..).into()),
                _ => rng.usize(..2000),
            };
            let payload = payload.min(largest);
            shapes.push(match rng.u8(..3) {
                0 => {
                    let size = rng.usize(1..=24);
                    Shape::packed(header, payload / size, size)
                }
                _ => Shape::contiguous(header, payload),
            });
        }
        shapes
    }
}

fn everybody_to_everybody(layout: &Layout, settings: &Settings, messages: usize, largest: usize) {
    let seed = layout.size() as u64 * 1000 + layout.hosts as u64;
    let plan = all_kinds(seed, messages, largest);
    run(layout, settings, |rank| exchange(rank, seed, &plan).map(drop));
}

#[test]
fn one_host() {
    for ranks in 1..=3 {
        everybody_to_everybody(&Layout::blocks(&[ranks]), &settings(), 100, 200 << 10);
    }
}

#[test]
fn two_hosts() {
    for layout in [Layout::blocks(&[1, 1]), Layout::blocks(&[1, 3]), Layout::cyclic(2, 4)] {
        everybody_to_everybody(&layout, &settings(), 100, 200 << 10);
    }
}

#[test]
fn three_hosts() {
    for layout in [Layout::blocks(&[1, 1, 1]), Layout::blocks(&[2, 1, 3])] {
        everybody_to_everybody(&layout, &settings(), 80, 200 << 10);
    }
}

#[test]
fn four_hosts() {
    for layout in [Layout::blocks(&[1; 4]), Layout::cyclic(4, 8), Layout::blocks(&[3, 1, 2, 1])] {
        everybody_to_everybody(&layout, &settings(), 50, 200 << 10);
    }
}

#[test]
fn five_hosts() {
    for layout in [Layout::blocks(&[1; 5]), Layout::blocks(&[1, 2, 3, 1, 2])] {
        everybody_to_everybody(&layout, &settings(), 40, 200 << 10);
    }
}

#[test]
fn eight_hosts() {
    for layout in [Layout::blocks(&[1; 8]), Layout::blocks(&[2, 1, 1, 2, 1, 1, 2, 1])] {
        everybody_to_everybody(&layout, &settings(), 25, 100 << 10);
    }
}

#[test]
fn sixteen_hosts() {
    everybody_to_everybody(&Layout::blocks(&[1; 16]), &settings(), 10, 100 << 10);
}

#[test]
fn over_weakly_ordered_windows() {
    for (layout, messages) in [
        (Layout::blocks(&[1, 1]), 30),
        (Layout::blocks(&[2, 1, 1]), 15),
        (Layout::blocks(&[2, 1, 2, 1]), 10),
        (Layout::blocks(&[1; 5]), 10),
        (Layout::blocks(&[1; 8]), 5),
    ] {
        let settings = tiny(&layout).with(|s| s.links.weak = Some(layout.size() as u64));
        everybody_to_everybody(&layout, &settings, messages, 40 << 10);
    }
}

/// The lanes of all ranks are always full, including those between forwarders.
#[test]
fn large_messages_to_everybody_through_tiny_windows() {
    for (layout, weak) in [
        (Layout::blocks(&[1; 4]), None),
        (Layout::blocks(&[2, 3, 1, 3]), None),
        (Layout::blocks(&[1; 6]), None),
        (Layout::blocks(&[1; 8]), None),
        (Layout::blocks(&[1; 8]), Some(8)),
    ] {
        let size = if weak.is_some() { 40_000 } else { 200_000 };
        let settings = tiny(&layout).with(|s| s.links.weak = weak);
        let plan = move |src: u32, dst: u32| match (src + dst) % 2 {
            0 => vec![Shape::contiguous(HEADER, size); 2],
            _ => vec![Shape::packed(HEADER, size / 24, 24), Shape::contiguous(HEADER, 8)],
        };
        run(&layout, &settings, |rank| exchange(rank, 1, &plan).map(drop));
    }
}

#[test]
fn settings_at_their_limits() {
    let layout = Layout::blocks(&[1, 2, 1, 1]);
    for settings in [
        settings().with(|s| s.limits.packed_max = 0),
        settings().with(|s| {
            s.limits.packed_max = 4 << 20;
            s.ring.chunk = Some(4 << 20);
        }),
        tiny(&layout).with(|s| {
            s.ring.chunk = Some(64);
            s.limits.packed_max = 100;
            s.ring.local_lane = 4096;
        }),
        settings().with(|s| {
            s.limits.eager_max = 0;
            s.endpoint.spin = Some(0);
            s.endpoint.yields = 0;
        }),
        settings().with(|s| s.endpoint.spin = Some(1_000_000)),
        settings().with(|s| s.limits.single_copy = SingleCopy::Never),
        settings().with(|s| {
            s.limits.single_copy = SingleCopy::Above(0);
            s.limits.split_copy = SplitCopy::Never;
        }),
        settings().with(|s| {
            s.limits.single_copy = SingleCopy::Above(64 << 10);
            s.limits.split_copy = SplitCopy::From(2);
        }),
    ] {
        everybody_to_everybody(&layout, &settings, 12, 30_000);
    }
}

/// Ranks may have different thresholds, as when one host of a job was tuned and another was not.
#[test]
fn ranks_need_not_have_the_same_thresholds() {
    let layout = Layout::blocks(&[1, 2, 1, 1]);
    let mixed = |rank: u32| match rank % 4 {
        0 => settings().with(|s| {
            s.limits.packed_max = 4 << 20;
            s.limits.single_copy = SingleCopy::Never;
            s.limits.split_copy = SplitCopy::Never;
        }),
        1 => settings().with(|s| {
            s.limits.packed_max = 0;
            s.limits.eager_max = 0;
            s.limits.single_copy = SingleCopy::Above(0);
            s.limits.split_copy = SplitCopy::From(2);
        }),
        2 => settings().with(|s| {
            s.limits.packed_max = 0;
            s.limits.eager_max = 0;
            s.limits.single_copy = SingleCopy::Never;
        }),
        _ => settings(),
    };
    let plan = all_kinds(77, 20, 200 << 10);
    run_each(&layout, mixed, |rank| exchange(rank, 77, &plan).map(drop));
}

#[test]
fn ranks_that_sleep_at_once_are_woken() {
    let layout = Layout::blocks(&[1, 2, 1, 1, 1]);
    let settings = tiny(&layout).with(|s| {
        s.endpoint.spin = Some(0);
        s.endpoint.yields = 0;
    });
    everybody_to_everybody(&layout, &settings, 20, 50_000);
}

#[test]
fn a_small_message_passes_between_the_pieces_of_a_large_one() {
    // To a neighbour, and to a host further away.
    for (layout, dst) in [(Layout::blocks(&[1, 1]), 1), (Layout::blocks(&[1; 4]), 2)] {
        let plan: Box<Plan> = Box::new(move |src, to| match (src, to) {
            (0, to) if to == dst => vec![Shape::contiguous(HEADER, 1 << 20), Shape::contiguous(HEADER, 8)],
            _ => vec![],
        });
        let settings = tiny(&layout);
        run(&layout, &settings, |rank| {
            if rank.rank != dst {
                return exchange(rank, 0, plan.as_ref()).map(drop);
            }
            let mut traffic = Traffic::new(layout.size());
            while traffic.complete == 0 {
                let event = rank.event()?;
                traffic.take(rank, event, plan.as_ref())?;
            }
            if traffic.open() != 1 {
                return Err("the large message was complete before the small one".into());
            }
            while traffic.complete < 2 {
                let event = rank.event()?;
                traffic.take(rank, event, plan.as_ref())?;
            }
            Ok(())
        });
    }
}

/// More chunked messages than may be in progress at once; small messages must not wait behind them.
#[test]
fn many_messages_in_pieces_at_once() {
    let layout = Layout::blocks(&[1, 1, 1, 1]);
    let plan = |src: u32, dst: u32| match (src, dst) {
        (0, 1 | 2) => (0..60).map(|n| Shape::contiguous(HEADER, if n % 3 == 0 { 10 } else { 9_000 + n })).collect(),
        _ => vec![],
    };
    run(&layout, &tiny(&layout), |rank| exchange(rank, 3, &plan).map(drop));
}

#[test]
fn hosts_forward_while_their_ranks_do_not_poll() {
    let layout = Layout::blocks(&[1; 4]);
    let plan = |src: u32, dst: u32| match (src, dst) {
        (0, 2) | (2, 0) => vec![Shape::contiguous(HEADER, 100_000), Shape::contiguous(HEADER, 8)],
        _ => vec![],
    };
    run(&layout, &settings(), |rank| {
        if rank.rank % 2 == 0 {
            exchange(rank, 0, &plan)?;
        }
        // Ranks 1 and 3, through which all messages are forwarded, wait here from the start.
        rank.barrier()
    });
}
