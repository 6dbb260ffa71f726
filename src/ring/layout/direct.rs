//! The layout of the area behind a rank's mailbox in which ranks of hosts that are not its neighbours deposit entries.

use super::ends::LANE_MIN;
use crate::topology::Topology;
use ntbring_queue::{LINE, LINES_MAX};

/// Size of a page, bytes.
const PAGE: usize = 4096;

/// Layout of the lanes from ranks that are two or more hops away: a line for each rank of the job, with the head of its
/// lane, and a lane for each rank. Pages are allocated by the rank that uses a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectLayout {
    ranks: usize,
    lane_bytes: usize,
}

impl DirectLayout {
    /// Returns the layout for lanes of about `lane_bytes` bytes.
    pub fn new(topology: &Topology, lane_bytes: u64) -> DirectLayout {
        let ranks = if topology.hosts() >= 4 { topology.size() } else { 0 };
        let lane_bytes = (lane_bytes as usize / LINE * LINE).clamp(LANE_MIN, LINES_MAX * LINE);
        DirectLayout { ranks, lane_bytes }
    }

    /// Returns the size of the area, bytes: 0 if all hosts are neighbours.
    pub fn total(&self) -> u64 {
        (self.heads() + self.ranks * self.lane_pages()) as u64
    }

    /// Returns the size of the heads of all lanes, bytes, which are at the start.
    pub fn heads(&self) -> usize {
        (self.ranks * LINE).next_multiple_of(PAGE)
    }

    /// Returns the offset of the head of a rank's lane, bytes.
    pub fn head(&self, rank: u32) -> usize {
        rank as usize * LINE
    }

    /// Returns the offset of a rank's lane, bytes.
    pub fn lane(&self, rank: u32) -> usize {
        self.heads() + rank as usize * self.lane_pages()
    }

    /// Returns the size of the pages of a lane, bytes.
    pub fn lane_pages(&self) -> usize {
        self.lane_bytes.next_multiple_of(PAGE)
    }

    /// Returns the size of a lane, bytes.
    pub fn lane_bytes(&self) -> usize {
        self.lane_bytes
    }
}
