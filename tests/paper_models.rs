//! The models of the experiments: each carries all kinds of messages, and differs from production
//! by what its name says.

mod common;

use common::ring::{run, try_to_join, Layout};
use common::traffic::{exchange, Shape};
use ntbring_endpoint::Settings;
use ntbring_ntb::timing::Model;
use ntbring_queue::PaperModel;
use ntbring_ring::handshake::HandshakeError;
use ntbring_ring::join::JoinError;
use ntbring_zerocopy::SingleCopy;
use std::path::Path;

/// MPICH's header of an ordinary message.
const HEADER: usize = 48;

const MODELS: [&str; 6] = ["1", "1-packed", "2", "3", "4", "5"];

fn settings(model: &str) -> Settings {
    Settings::default().with(|s| {
        s.ring.paper_model = PaperModel::parse(model).unwrap();
        s.limits.single_copy = SingleCopy::Never;
    })
}

/// Few enough that every offer is accepted as a whole (see `common::traffic`): some models send
/// without asking, and a rank that wants less leaves the exchange before all of it has come.
const MESSAGES: usize = 5;

/// Small and large, contiguous and packed, with headers of several sizes.
fn plan(seed: u64, messages: usize, largest: usize) -> impl Fn(u32, u32) -> Vec<Shape> {
    move |src, dst| {
        let mut rng = fastrand::Rng::with_seed(seed ^ u64::from(src) << 20 ^ u64::from(dst) << 40);
        let shape = |_| {
            let header = [0, 16, HEADER, 333][rng.usize(..4)];
            let payload = match rng.u8(..6) {
                0 => 0,
                1 => rng.usize(..=largest),
                2 => [1, 8, 9, 63, 64, 65, 8192, 16384][rng.usize(..8)].min(largest),
                _ => rng.usize(..2000),
            };
            match rng.u8(..3) {
                0 => {
                    let size = rng.usize(1..=24);
                    Shape::packed(header, payload / size, size)
                }
                _ => Shape::contiguous(header, payload),
            }
        };
        (0..messages).map(shape).collect()
    }
}

#[test]
fn every_model_carries_everything() {
    for model in MODELS {
        for ranks in [&[1, 1][..], &[2, 1], &[1, 1, 1, 1], &[2, 1, 2, 1, 1]] {
            for seed in 10..15 {
                run(&Layout::blocks(ranks), &settings(model), |rank| {
                    exchange(rank, 5, &plan(seed, MESSAGES, 150_000)).map(drop)
                });
            }
        }
    }
}

#[test]
fn every_model_carries_everything_where_lanes_are_small_and_windows_weak() {
    for model in MODELS {
        for (ranks, weak) in [(&[1, 1][..], None), (&[1, 1, 1, 1], None), (&[1, 1], Some(3)), (&[1, 2, 1, 1], Some(4))]
        {
            let settings = settings(model).with(|s| {
                s.ring.window = Some(96 << 10);
                s.ring.local_lane = 4096;
                s.links.weak = weak;
            });
            run(&Layout::blocks(ranks), &settings, |rank| exchange(rank, 6, &plan(6, MESSAGES, 30_000)).map(drop));
        }
    }
}

#[test]
fn every_model_carries_everything_over_a_modelled_link_and_wakes_who_sleeps() {
    for model in MODELS {
        for spin in [None, Some(0)] {
            let link_model = Model::parse("gen3x8").unwrap();
            let settings = settings(model).with(|s| {
                s.links.model = link_model;
                s.endpoint.spin = spin;
                s.endpoint.yields = 0;
            });
            run(&Layout::blocks(&[1, 1]), &settings, |rank| exchange(rank, 7, &plan(7, MESSAGES, 100_000)).map(drop));
        }
    }
}

/// Stores and writes of a rank, from the record of NTBRING_TRACE.
#[derive(Debug, Default)]
struct Recorded {
    /// To the first bytes of the window, where heads and tails are returned and announced.
    controls: u64,
    /// Of tags, and of words that are cleared.
    tags: u64,
}

fn recorded(trace: &Path, rank: usize) -> Recorded {
    let mut found = Recorded::default();
    for line in std::fs::read_to_string(format!("{}.{rank}", trace.display())).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        if line["op"] == "store" {
            // On two hosts of one rank there are five lanes, with a line of 64 bytes each.
            match line["offset"].as_u64().unwrap() < 5 * 64 {
                true => found.controls += 1,
                false if line["value"].as_u64() != Some(0) => found.tags += 1,
                false => {}
            }
        }
    }
    found
}

/// What 100 messages of 100 bytes cost: stores of the sender, stores of the receiver.
fn cost(model: &str) -> [Recorded; 2] {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    let settings = settings(model).with(|s| s.links.trace = Some(trace.clone()));
    run(&Layout::blocks(&[1, 1]), &settings, |rank| {
        let plan = |src: u32, dst: u32| match (src, dst) {
            // Even numbers are not offered.
            (0, 1) => vec![Shape::contiguous(HEADER, 100); 100],
            _ => vec![],
        };
        exchange(rank, 1, &plan).map(drop)
    });
    [recorded(&trace, 0), recorded(&trace, 1)]
}

#[test]
fn models_cost_the_messages_that_they_say() {
    for (model, entries, announced) in
        [("1", 200, true), ("1-packed", 100, true), ("2", 100, false), ("4", 200, false), ("5", 100, false)]
    {
        let [sender, receiver] = cost(model);
        assert_eq!(sender.tags, entries, "{model}: {sender:?}");
        assert_eq!(sender.controls, if announced { entries } else { 0 }, "{model}: {sender:?}");
        assert_eq!(receiver.controls, if announced { entries } else { 0 }, "{model}: {receiver:?}");
        assert_eq!(receiver.tags, 0, "{model}: {receiver:?}");
    }
}

#[test]
fn hosts_with_different_models_do_not_join() {
    let models = |rank: u32| settings(if rank == 0 { "5" } else { "1-packed" });
    for result in try_to_join(&Layout::blocks(&[1, 1]), models) {
        let Err(JoinError::Handshake(HandshakeError::Disagree { what, mine, theirs, .. })) = result else {
            panic!("{result:?}");
        };
        assert_eq!(what, "NTBRING_PAPER_MODEL");
        assert!([&mine, &theirs].contains(&&"5".to_string()) && mine != theirs, "{mine} {theirs}");
    }
}
