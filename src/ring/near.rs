//! Who is near whom: how much one process may do with another's memory.

use super::join::{Card, Link};
use super::Topology;
use ntbring_host::Reach;
use ntbring_ntb::Port;
use std::sync::Arc;

/// Whom the kernel lets this process copy from and to: ranks of its own host, and of those
/// neighbours whose memory is ordinary memory of this machine.
pub(super) fn find_reach(
    topology: &Topology,
    rank: u32,
    links: Option<&[Link; 2]>,
    cards: &[Card],
) -> Vec<Option<Reach>> {
    let host = topology.host_of(rank);
    let probe = |r: u32| match Reach::probe(cards[r as usize].pid, cards[r as usize].probe) {
        Ok(reach) => Some(reach),
        Err(error) => {
            log::info!("rank {rank}: no single copies from and to rank {r}: {error}");
            None
        }
    };
    let near = |r: u32| is_near(host, links, topology.host_of(r));
    (0..topology.size() as u32).map(|r| near(r).then(|| probe(r)).flatten()).collect()
}

/// Whether memory of the other host is as good as the own one's: only then may anything but a
/// write through the window touch it.
pub(super) fn is_near(host: usize, links: Option<&[Link; 2]>, other: usize) -> bool {
    other == host || links.into_iter().flatten().any(|l| l.neighbour() == other && l.is_coherent())
}

/// Whether hosts have forwarders, which serve segments too: if not everybody is near everybody. All
/// hosts see it alike, since their ports are of one kind, and they agree on whether links are trusted.
pub(super) fn is_served(topology: &Topology, ports: &[Arc<dyn Port>], trusted: bool) -> bool {
    topology.hosts() >= 4 || !trusted && topology.hosts() > 1 || ports.iter().any(|port| !port.coherent())
}
