//! Shortcuts around the windows to ranks of this host and of its neighbours: mapped segments and kernel copies (CMA).

use super::join::{Card, Link};
use super::settings::JoinSettings;
use super::Topology;
use ntbring_host::{place, Reach};
use ntbring_ntb::{Port, Shortcuts};
use ntbring_queue::Reliability;
use std::sync::Arc;

/// Returns the shortcuts that may be used to the host at the other end of a port: those that the port offers and no
/// setting disables.
pub(super) fn shortcuts_of(port: &dyn Port, settings: &JoinSettings) -> Shortcuts {
    match settings.ring.reliability {
        Reliability::Off => port.shortcuts() & settings.links.shortcuts,
        _ => Shortcuts::NONE,
    }
}

/// Returns true if the host at the other end of a port cannot be watched by process ids, so that hosts need monitors. The
/// result is the same for all ports of a ring.
pub(super) fn is_monitored(port: &dyn Port, settings: &JoinSettings) -> bool {
    !(port.shortcuts() & settings.links.shortcuts).processes
}

/// Probes kernel copies (CMA) from and to each rank: the ranks of the own host, and those of neighbours whose link
/// grants that shortcut. Returns one entry for each rank, in rank order; None where copies are not possible.
pub(super) fn find_reach(
    topology: &Topology,
    rank: u32,
    links: Option<&[Link; 2]>,
    cards: &[Card],
) -> Vec<Option<Reach>> {
    let (host, here) = (topology.host_of(rank), place());
    let probe = |r: u32| match Reach::probe(cards[r as usize].pid, cards[r as usize].probe) {
        Ok(reach) => Some(reach),
        Err(error) => {
            log::info!("rank {rank}: no single copies from and to rank {r}: {error}");
            None
        }
    };
    // Process ids are only valid within one process namespace of one machine.
    let granted = |r: u32| {
        let other = topology.host_of(r);
        cards[r as usize].place == here
            && (other == host || leads_to(links, other, |shortcuts| shortcuts.kernel_copies))
    };
    (0..topology.size() as u32).map(|r| granted(r).then(|| probe(r)).flatten()).collect()
}

/// Returns true if processes of `host` may map segments of host `other`.
pub(super) fn is_near(host: usize, links: Option<&[Link; 2]>, other: usize) -> bool {
    other == host || leads_to(links, other, |shortcuts| shortcuts.segments)
}

/// Returns true if a link leads to `host` and its shortcuts satisfy `with`.
fn leads_to(links: Option<&[Link; 2]>, host: usize, with: impl Fn(Shortcuts) -> bool) -> bool {
    links.into_iter().flatten().any(|link| link.neighbour() == host && with(link.shortcuts()))
}

/// Returns true if hosts have forwarders, which also serve segments. They have none if all hosts map each other's
/// segments. All hosts compute the same result, since they have the same settings and agree on shortcuts in the
/// handshake.
pub(super) fn is_served(topology: &Topology, ports: &[Arc<dyn Port>], settings: &JoinSettings) -> bool {
    topology.hosts() >= 4
        || topology.hosts() > 1 && ports.iter().any(|port| !shortcuts_of(port.as_ref(), settings).segments)
}
