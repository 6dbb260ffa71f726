//! The cards of all ranks: the checks of them, and the facts that a rank derives from them.

use super::card::{Card, HostCard};
use super::error::JoinError;
use crate::external_peer::ExternalAddress;
use crate::protocol::rank_doorbell;
use crate::topology::Topology;
use ntbring_host::{machine, Place};
use ntbring_ntb::settings::Device;

/// The cards of all ranks, in rank order.
#[derive(Clone, Copy)]
pub(super) struct Cards<'a> {
    topology: &'a Topology,
    cards: &'a [Card],
}

impl<'a> Cards<'a> {
    /// Checks that all ranks use one kind of device, and that the ranks of the host of rank `rank`, which is this
    /// process, are on its machine.
    pub fn check(topology: &'a Topology, rank: u32, cards: &'a [Card]) -> Result<Cards<'a>, JoinError> {
        let mine = cards[rank as usize].device;
        if let Some(other) = (0..cards.len()).find(|&r| cards[r].device != mine) {
            let [mine, theirs] = [mine, cards[other].device].map(Device::kind_name);
            return Err(JoinError::Disagree { rank, other: other as u32, what: "NTBRING_DEVICE", mine, theirs });
        }
        let (here, host) = (machine(), topology.host_of(rank));
        match topology.ranks_of(host).iter().find(|&&rank| cards[rank as usize].machine != here) {
            Some(&rank) => Err(JoinError::Elsewhere { rank, host }),
            None => Ok(Cards { topology, cards }),
        }
    }

    /// Returns a host's windows, ports and memory.
    pub fn host(&self, host: usize) -> Result<HostCard, JoinError> {
        let rank = self.topology.ranks_of(host)[0];
        let what = || "the first rank of its host gave no memory".to_string();
        self.cards[rank as usize].host.ok_or_else(|| JoinError::Address { rank, what: what() })
    }

    /// Returns the number of a host's forwarder threads.
    pub fn threads(&self, host: usize) -> usize {
        usize::from(self.cards[self.topology.ranks_of(host)[0] as usize].threads)
    }

    /// Returns the token that identifies the job: that of the mailbox of its rank 0.
    pub fn job(&self) -> u64 {
        self.cards[0].mailbox.token
    }

    /// Returns the process ids of all ranks.
    pub fn pids(&self) -> Vec<u32> {
        self.cards.iter().map(|card| card.pid).collect()
    }

    /// Returns the addresses of all ranks for processes of other jobs. `doorbells` is the number of doorbells of each
    /// host.
    pub fn external_peers(&self, doorbells: usize) -> Result<Vec<ExternalAddress>, JoinError> {
        let external_peer = |(rank, card): (usize, &Card)| {
            let rank = rank as u32;
            let doorbell = (rank_doorbell(self.topology.local_of(rank)) % doorbells) as u32;
            let host = self.host(self.topology.host_of(rank))?.fabric;
            let &Card { mailbox, machine, host_name, .. } = card;
            let place = Place { job: self.job(), machine, host_name };
            Ok(ExternalAddress { mailbox, place, host, doorbell })
        };
        self.cards.iter().enumerate().map(external_peer).collect()
    }

    /// Returns the card of a rank.
    pub fn of(&self, rank: u32) -> &'a Card {
        &self.cards[rank as usize]
    }

    /// Returns the cards of the ranks on this process's machine and in its process namespace.
    pub fn here(&self) -> impl Iterator<Item = &'a Card> {
        let here = machine();
        self.cards.iter().filter(move |card| card.machine == here)
    }
}
