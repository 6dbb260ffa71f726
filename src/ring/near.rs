//! Shortcuts to the ranks of this host and of its neighbours.

use super::join::{Card, Link};
use super::settings::JoinSettings;
use super::Topology;
use ntbring_host::{place, Reach};
use ntbring_ntb::{Port, Shortcuts};
use ntbring_queue::Reliability;
use std::sync::Arc;

/// The shortcuts to the host at the other end of a port that may be used: those that the port grants and no setting
/// withholds.
pub(super) fn shortcuts_of(port: &dyn Port, settings: &JoinSettings) -> Shortcuts {
    match settings.ring.reliability {
        Reliability::Off => port.shortcuts() & settings.links.shortcuts,
        _ => Shortcuts::NONE,
    }
}

/// The ranks that the kernel lets this process copy from and to: of its own host, and of neighbours to which there is that
/// shortcut.
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
    // Process ids mean something within one namespace of one machine only.
    let granted = |r: u32| {
        let other = topology.host_of(r);
        cards[r as usize].place == here
            && (other == host || leads_to(links, other, |shortcuts| shortcuts.kernel_copies))
    };
    (0..topology.size() as u32).map(|r| granted(r).then(|| probe(r)).flatten()).collect()
}

/// Whether processes of this host may map segments of the other's.
pub(super) fn is_near(host: usize, links: Option<&[Link; 2]>, other: usize) -> bool {
    other == host || leads_to(links, other, |shortcuts| shortcuts.segments)
}

/// Whether a link leads to that host with such shortcuts.
fn leads_to(links: Option<&[Link; 2]>, host: usize, with: impl Fn(Shortcuts) -> bool) -> bool {
    links.into_iter().flatten().any(|link| link.neighbour() == host && with(link.shortcuts()))
}

/// Whether hosts have forwarders, which serve segments, too: unless all hosts map each other's segments. All hosts come to
/// the same result, since they have the same settings and agree in the handshake on shortcuts.
pub(super) fn is_served(topology: &Topology, ports: &[Arc<dyn Port>], settings: &JoinSettings) -> bool {
    topology.hosts() >= 4
        || topology.hosts() > 1 && ports.iter().any(|port| !shortcuts_of(port.as_ref(), settings).segments)
}
