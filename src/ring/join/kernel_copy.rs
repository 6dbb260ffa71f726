//! Kernel copies from and to other ranks.

use super::cards::Cards;
use crate::policy::LinkPolicy;
use crate::topology::Topology;
use ntbring_host::{machine, KernelCopy};

/// Probes kernel copies from and to each rank: the ranks of the own host, and all ranks of a ring whose links grant that
/// shortcut, because all of its hosts are on one machine then. Returns one entry for each rank, in rank order; None where
/// copies are not possible.
pub(super) fn probe_kernel_copies(
    topology: &Topology,
    rank: u32,
    policy: LinkPolicy,
    cards: Cards,
) -> Vec<Option<KernelCopy>> {
    let (host, here) = (topology.host_of(rank), machine());
    let probe = |r: u32| match KernelCopy::probe(cards.of(r).pid, cards.of(r).probe) {
        Ok(kernel_copy) => Some(kernel_copy),
        Err(error) => {
            log::info!("rank {rank}: no kernel copies from and to rank {r}: {error}");
            None
        }
    };
    // Process ids are only valid within one process namespace of one machine.
    let granted = |r: u32| {
        cards.of(r).machine == here
            && (topology.distance(host, topology.host_of(r)) == 0 || policy.shortcuts().kernel_copies)
    };
    (0..topology.size() as u32).map(|r| granted(r).then(|| probe(r)).flatten()).collect()
}
