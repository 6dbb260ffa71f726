//! One rank in detail: its counters and its peers.

use super::change::Change;
use ntbring_endpoint::{Peer, COUNTERS};
use serde::Serialize;

/// A rank in detail.
#[derive(Clone, Debug, Serialize)]
pub struct Detail {
    /// The rank.
    pub rank: u64,
    /// Counters that are not 0.
    pub counters: Vec<CounterLine>,
    /// Ranks to which it has sent anything.
    pub peers: Vec<PeerLine>,
}

/// A counter.
#[derive(Clone, Debug, Serialize)]
pub struct CounterLine {
    /// Name, as in the statistics.
    pub name: &'static str,
    /// Description of the counted quantity.
    pub meaning: &'static str,
    /// Value since the job's start.
    pub total: u64,
    /// Increase per second.
    pub per_s: Option<f64>,
}

/// Traffic to a peer.
#[derive(Clone, Debug, Serialize)]
pub struct PeerLine {
    /// The rank to which it was sent.
    pub rank: u64,
    /// The host of that rank.
    pub host: u64,
    /// Distance in hops.
    pub distance: u64,
    /// True if hosts between relay the messages.
    pub relayed: bool,
    /// Messages since the job's start.
    pub msgs: u64,
    /// Bytes since the job's start.
    pub bytes: u64,
    /// Messages per second.
    pub msgs_per_s: Option<f64>,
    /// Bytes per second.
    pub bytes_per_s: Option<f64>,
}

impl Detail {
    /// Returns the details of the rank with these VCIs.
    pub fn of(vcis: &[Change]) -> Detail {
        let mut detail = Detail { rank: vcis[0].now.figures.rank, counters: Vec::new(), peers: Vec::new() };
        for (i, counter) in COUNTERS.iter().enumerate() {
            let total: u64 = vcis.iter().map(|vci| vci.now.figures.counters[i]).sum();
            let per_s = vcis.iter().map(|vci| vci.rate(counter.name)).fold(None, sum);
            if total > 0 {
                detail.counters.push(CounterLine { name: counter.name, meaning: counter.meaning, total, per_s });
            }
        }
        for vci in vcis {
            vci.now.figures.peers.iter().for_each(|peer| detail.add(peer, vci.peer_rates(peer)));
        }
        detail.peers.sort_by_key(|peer| peer.rank);
        detail
    }

    fn add(&mut self, peer: &Peer, [msgs_per_s, bytes_per_s]: [Option<f64>; 2]) {
        let &Peer { rank, host, distance, relayed, msgs, bytes } = peer;
        match self.peers.iter_mut().find(|line| line.rank == rank) {
            Some(line) => {
                line.msgs += msgs;
                line.bytes += bytes;
                line.msgs_per_s = sum(line.msgs_per_s, msgs_per_s);
                line.bytes_per_s = sum(line.bytes_per_s, bytes_per_s);
            }
            None => self.peers.push(PeerLine { rank, host, distance, relayed, msgs, bytes, msgs_per_s, bytes_per_s }),
        }
    }
}

/// Adds two rates of which either may be unknown.
pub fn sum(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}
