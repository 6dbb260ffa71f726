//! Readings for unit tests.

use super::job::Job;
use super::sample::{Reading, Sample, Sampler};
use crate::reading::Rank;
use ntbring_endpoint::{Figures, LinkFigures, Peer, Sizes, State, Times, COUNTERS, LINK_COUNTERS};
use ntbring_ntb::Side;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Number of hosts of the jobs, each with one rank.
pub const HOSTS: u64 = 4;

/// Returns a time: so many seconds after the first reading.
pub fn at(seconds: f64) -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now) + Duration::from_secs_f64(seconds)
}

/// Returns a rank whose counters are 0, published at time 0.
pub fn rank(rank: u64) -> Rank {
    let link = |side, to| LinkFigures { side, to, counters: vec![0; LINK_COUNTERS.len()] };
    let (left, right) = ((rank + HOSTS - 1) % HOSTS, (rank + 1) % HOSTS);
    let peer = Peer { rank: right, host: right, distance: 1, relayed: false, msgs: 0, bytes: 0 };
    let figures = Figures {
        rank,
        vci: 0,
        host: rank,
        hosts: HOSTS,
        size: HOSTS,
        lane_bytes: 4096,
        counters: vec![0; COUNTERS.len()],
        sizes: Sizes::default(),
        times: Times::default(),
        state: Some(State::default()),
        links: vec![link(Side::Left, left), link(Side::Right, right)],
        peers: vec![peer],
    };
    Rank { job: 100, age_ms: 0, figures, published: at(0.0), pid: Some(100 + rank as u32) }
}

/// Returns a rank that has sent so many bytes to the right, published at this time.
pub fn busy(number: u64, bytes: u64, published: f64) -> Rank {
    let mut rank = Rank { published: at(published), ..rank(number) };
    let mut set = |name: &str, value| {
        let at = COUNTERS.iter().position(|counter| counter.name == name).unwrap();
        rank.figures.counters[at] = value;
    };
    set("msgs_direct", bytes / 1000);
    set("bytes_direct", bytes);
    set("bytes_received", bytes / 2);
    *link(&mut rank, 1, "sent_bytes") = bytes;
    (rank.figures.peers[0].msgs, rank.figures.peers[0].bytes) = (bytes / 1000, bytes);
    rank
}

/// Returns a counter of a link of a rank: 0 for the left one, 1 for the right one.
pub fn link<'a>(rank: &'a mut Rank, side: usize, name: &str) -> &'a mut u64 {
    let at = LINK_COUNTERS.iter().position(|counter| counter.name == name).unwrap();
    &mut rank.figures.links[side].counters[at]
}

/// Returns a reading at this time.
pub fn reading(seconds: f64, ranks: Vec<Rank>) -> Reading {
    let job = Job { id: 100, program: Some("halo".into()), running_s: Some(83.0), ..Job::default() };
    Reading { at: at(seconds), job, ranks, stopped: BTreeSet::new(), down: vec![] }
}

/// Returns the sample of a job whose ranks have sent 1, 2, 3 and 4 MB in one second; link 1-2 is down.
pub fn sample() -> Sample {
    let mut sampler = Sampler::default();
    sampler.step(reading(0.0, (0..HOSTS).map(rank).collect()));
    let ranks = (0..HOSTS).map(|rank| busy(rank, (rank + 1) * 1_000_000, 1.0)).collect();
    sampler.step(Reading { down: vec!["1-2".into()], ..reading(1.0, ranks) })
}
