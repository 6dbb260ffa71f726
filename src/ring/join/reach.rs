//! Kernel copies (CMA) from and to other ranks.

use super::cards::Cards;
use crate::policy::LinkPolicy;
use crate::topology::Topology;
use ntbring_host::{place, Reach};

/// Probes kernel copies (CMA) from and to each rank: the ranks of the own host, and those of neighbours whose links
/// grant that shortcut. Returns one entry for each rank, in rank order; None where copies are not possible.
pub(super) fn find_reach(topology: &Topology, rank: u32, policy: LinkPolicy, cards: Cards) -> Vec<Option<Reach>> {
    let (host, here) = (topology.host_of(rank), place());
    let probe = |r: u32| match Reach::probe(cards.of(r).pid, cards.of(r).probe) {
        Ok(reach) => Some(reach),
        Err(error) => {
            log::info!("rank {rank}: no single copies from and to rank {r}: {error}");
            None
        }
    };
    // Process ids are only valid within one process namespace of one machine.
    let granted = |r: u32| {
        cards.of(r).place == here
            && match topology.distance(host, topology.host_of(r)) {
                0 => true,
                1 => policy.shortcuts().kernel_copies,
                _ => false,
            }
    };
    (0..topology.size() as u32).map(|r| granted(r).then(|| probe(r)).flatten()).collect()
}
