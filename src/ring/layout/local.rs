//! The layout of the memory that the processes of a host share.

use super::ends::LANE_MIN;
use crate::liveness::table::Table;
use crate::topology::Topology;
use ntbring_ntb::notice;
use ntbring_queue::{LINE, LINES_MAX};
use ntbring_rma::Registry;

/// Layout of a host's local part: a control block; lanes between its own ranks, for messages that MPICH passes to the
/// netmod although both ranks are on one host; the registry of segments; the table of liveness; and the state of
/// notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalLayout {
    ranks: usize,
    lane_bytes: usize,
    /// Size of the table of liveness, bytes.
    liveness: usize,
}

impl LocalLayout {
    /// Size of the control block at the start, bytes.
    pub const CONTROL: usize = 4096;

    /// Returns the layout for a host, with lanes of about `lane_bytes` bytes.
    pub fn new(topology: &Topology, host: usize, lane_bytes: u64) -> LocalLayout {
        let lane_bytes = (lane_bytes as usize / LINE * LINE).clamp(LANE_MIN, LINES_MAX * LINE);
        LocalLayout { ranks: topology.ranks_of(host).len(), lane_bytes, liveness: Table::bytes(topology) }
    }

    /// Returns the total size, bytes, a multiple of the page size.
    pub fn total(&self) -> u64 {
        (self.notices_offset() + notice::STATE).next_multiple_of(4096) as u64
    }

    fn lanes(&self) -> usize {
        self.ranks * self.ranks
    }

    fn lane(&self, from: usize, to: usize) -> usize {
        from * self.ranks + to
    }

    /// Returns the offset of the registry of segments, bytes.
    pub fn registry_offset(&self) -> usize {
        Self::CONTROL + self.lanes() * (LINE + self.lane_bytes)
    }

    /// Returns the offset of the table in which the host's monitor publishes its knowledge, bytes.
    pub fn liveness_offset(&self) -> usize {
        (self.registry_offset() + Registry::bytes(self.ranks)).next_multiple_of(LINE)
    }

    /// Returns the offset of the state of notices between this host and its neighbours, bytes.
    pub fn notices_offset(&self) -> usize {
        (self.liveness_offset() + self.liveness).next_multiple_of(LINE)
    }

    /// Returns the size of each lane, bytes.
    pub fn lane_bytes(&self) -> usize {
        self.lane_bytes
    }

    /// Returns the offset of the lane from one rank to another, bytes.
    pub fn lane_offset(&self, from: usize, to: usize) -> usize {
        Self::CONTROL + self.lanes() * LINE + self.lane(from, to) * self.lane_bytes
    }

    /// Returns the offset of the credit of the lane from one rank to another, bytes.
    pub fn credit_offset(&self, from: usize, to: usize) -> usize {
        Self::CONTROL + self.lane(from, to) * LINE
    }
}
