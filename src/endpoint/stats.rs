//! The JSON line of counters that is written when the rank leaves the ring.

use super::counters::COUNTERS;
use super::Endpoint;
use serde::{Serialize, Serializer};
use std::fs::OpenOptions;
use std::io::Write;

/// One rank's line of NTBRING_STATS.
#[derive(Serialize)]
struct Line<'a> {
    rank: u32,
    host: usize,
    hosts: usize,
    size: usize,
    lane_bytes: usize,
    #[serde(flatten, serialize_with = "counters")]
    endpoint: &'a Endpoint,
    peers: Vec<Peer>,
}

/// What went to one rank.
#[derive(Serialize)]
struct Peer {
    rank: usize,
    host: usize,
    distance: usize,
    msgs: u64,
    bytes: u64,
}

fn counters<S: Serializer>(endpoint: &&Endpoint, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(COUNTERS.iter().map(|counter| (counter.name, endpoint.count(counter))))
}

impl Endpoint {
    fn line(&self) -> Line<'_> {
        let topology = self.members.topology();
        let flows = self.out.flows[..topology.size()].iter().enumerate().filter(|(_, flow)| flow.msgs > 0);
        let peers = flows.map(|(rank, flow)| Peer {
            rank,
            host: topology.host_of(rank as u32),
            distance: flow.distance,
            msgs: flow.msgs,
            bytes: flow.bytes,
        });
        Line {
            rank: self.members.rank(),
            host: self.members.host(),
            hosts: topology.hosts(),
            size: topology.size(),
            lane_bytes: self.out.smallest_lane(),
            endpoint: self,
            peers: peers.collect(),
        }
    }

    /// Appends the line to the file of NTBRING_STATS, if there is one. It goes out in one write,
    /// so that ranks that share the file do not mix.
    pub(super) fn write_stats(&self) {
        let Some(path) = &self.settings.stats else { return };
        let result = serde_json::to_string(&self.line()).map_err(std::io::Error::from).and_then(|mut line| {
            line.push('\n');
            OpenOptions::new().append(true).create(true).open(path)?.write_all(line.as_bytes())
        });
        if let Err(error) = result {
            log::error!("NTBRING_STATS={}: {error}", path.display());
        }
    }
}
