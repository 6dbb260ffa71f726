//! Lanes between ranks whose hosts are not neighbours, past the hosts between them: the shortcut `lanes`.
//!
//! The receiver has the memory ([`DirectLanes`]). A sender maps its lane there, and tells the receiver by a packet that goes
//! round the ring.

use super::direct_lanes::DirectLanes;
use super::member::Membership;
use ntbring_host::{HostError, Mailbox};
use ntbring_memory::{InWindow, OutWindow};
use ntbring_ntb::fabric::Bells;
use ntbring_ntb::NtbError;
use ntbring_queue::{Consumer, Producer};
use std::sync::Arc;

/// One end of a lane, and the doorbell of the process at the other end.
pub struct DirectLane<End> {
    /// The end.
    pub end: End,
    /// The doorbells of the other end's host, and the number of the process's doorbell; None if it has ended.
    pub bell: Option<(Arc<dyn Bells>, usize)>,
}

impl Membership {
    /// Returns true if this process may send to a rank past the hosts between them.
    pub fn has_direct_lane(&self, rank: u32) -> bool {
        self.direct_lanes_with(rank).is_some()
    }

    fn direct_lanes_with(&self, rank: u32) -> Option<&DirectLanes> {
        let (topology, host) = (&self.topology, self.host());
        let is_far = (rank as usize) < topology.size() && topology.distance(host, topology.host_of(rank)) >= 2;
        self.direct_lanes.as_ref().filter(|_| is_far)
    }

    /// Returns the sending end of the lane to a rank.
    pub fn direct_producer(&self, rank: u32) -> Result<DirectLane<Producer>, NtbError> {
        let lanes = self.direct_lanes_with(rank).ok_or_else(|| self.no_direct_lane(rank))?;
        let mailbox = Mailbox::open(&self.external_peer_addresses()[rank as usize].mailbox)?;
        if !lanes.fit(&mailbox) {
            let what = "its lanes have another size (NTBRING_LOCAL_LANE)";
            return Err(HostError::Foreign { pid: self.pid(rank), what }.into());
        }
        lanes.back(&mailbox, self.rank)?;
        let (lane, head) = lanes.lane(&mailbox, self.rank)?;
        self.with_doorbell(rank, Producer::new(OutWindow::new(lane), InWindow::new(head)))
    }

    /// Returns the receiving end of the lane from a rank.
    pub fn direct_consumer(&self, rank: u32) -> Result<DirectLane<Consumer>, NtbError> {
        let lanes = self.direct_lanes_with(rank).ok_or_else(|| self.no_direct_lane(rank))?;
        let (lane, head) = lanes.lane(lanes.mailbox(), rank)?;
        self.with_doorbell(rank, Consumer::new(InWindow::new(lane), OutWindow::new(head)))
    }

    fn no_direct_lane(&self, rank: u32) -> HostError {
        let pid = self.peers.pids.get(rank as usize).copied().unwrap_or(0);
        HostError::Foreign { pid, what: "there is no lane between it and this process" }
    }

    /// Adds the doorbell of a rank of any host of this machine.
    fn with_doorbell<End>(&self, rank: u32, end: End) -> Result<DirectLane<End>, NtbError> {
        let address = &self.external_peer_addresses()[rank as usize];
        let bells = self.reach().bells(&address.host, &address.mailbox)?;
        Ok(DirectLane { end, bell: bells.map(|bells| (bells, address.doorbell as usize)) })
    }
}
