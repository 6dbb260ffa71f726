//! Lanes past the hosts between two ranks that are not neighbours.

use super::*;
use ntbring_ntb::Shortcuts;

/// Messages of all kinds: in one entry, in chunks, and by rendezvous.
fn plan(_: u32, _: u32) -> Vec<Shape> {
    [100, 5_000, 30_000, 0, 300_000, 64, 7_000, 40_000, 8, 20_000].map(|n| Shape::contiguous(HEADER, n)).to_vec()
}

/// Lets every rank exchange messages with every other, in a few rounds. Returns the numbers of messages that were relayed
/// and sent directly by all ranks to ranks of hosts that are not neighbours.
fn exchanged(shortcuts: Shortcuts, lanes: &[u64]) -> (u64, u64) {
    let dir = tempfile::tempdir().unwrap();
    let stats = dir.path().join("stats");
    let layout = Layout::blocks(&[1, 2, 1, 1, 1]);
    let settings = settings().with(|s| (s.endpoint.stats, s.links.shortcuts) = (Some(stats.clone()), shortcuts));
    let of = |rank: u32| settings.clone().with(|s| s.ring.local_lane = lanes[rank as usize % lanes.len()]);
    run_each(&layout, of, |rank| {
        (0..4).try_for_each(|round| {
            exchange(rank, round, &plan)?;
            rank.barrier()
        })
    });
    let text = std::fs::read_to_string(&stats).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let far = |line: &serde_json::Value| {
        let peers = line["peers"].as_array().unwrap().clone();
        peers.iter().filter(|peer| peer["distance"] == 2).filter_map(|peer| peer["msgs"].as_u64()).sum::<u64>()
    };
    lines
        .map(|line| (line["msgs_relayed"].as_u64().unwrap(), far(&line)))
        .fold((0, 0), |(relayed, direct), (r, all)| (relayed + r, direct + all - r))
}

#[test]
fn messages_pass_the_hosts_between_in_order() {
    let (relayed, direct) = exchanged(Shortcuts::ALL, &[64 << 10]);
    assert!(relayed > 0 && direct > relayed, "{relayed} relayed, {direct} direct");
}

#[test]
fn without_the_shortcut_all_are_relayed() {
    let (relayed, direct) = exchanged(Shortcuts { lanes: false, ..Shortcuts::ALL }, &[64 << 10]);
    assert!(relayed > 0 && direct == 0, "{relayed} relayed, {direct} direct");
}

/// The ranks of a host must have the same size.
#[test]
fn between_lanes_of_different_sizes_all_are_relayed() {
    let (relayed, direct) = exchanged(Shortcuts::ALL, &[64 << 10, 96 << 10, 96 << 10, 160 << 10, 192 << 10, 256 << 10]);
    assert!(relayed > 0 && direct == 0, "{relayed} relayed, {direct} direct");
}

#[test]
fn the_largest_and_the_smallest_lanes_work() {
    for lane in [4 << 10, 2 << 20] {
        let (relayed, direct) = exchanged(Shortcuts::ALL, &[lane]);
        assert!(relayed > 0 && direct > relayed, "{relayed} relayed, {direct} direct");
    }
}
