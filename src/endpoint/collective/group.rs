//! The state of a group, and of its allgather in progress.

use super::direction::RIGHTWARD;
use crate::error::EndpointError;
use ntbring_queue::{BoardReader, Posted};
use ntbring_ring::topology::HOSTS_MAX;
use ntbring_ring::PeerLoss;

/// Greatest distance, in hosts, that a block travels.
pub const SPAN_MAX: usize = HOSTS_MAX / 2;

/// The blocks that travel in one direction.
pub struct Stream {
    /// Number of hosts that the blocks pass.
    pub span: usize,
    /// Local numbers of the ranks to which they are sent and from which they come: indices into the list that
    /// [`super::groups::Groups`] has for the direction.
    pub to: usize,
    pub from: usize,
    /// The mailbox into which the host behind the neighbour writes for the neighbour, if it can be read.
    pub view: Option<BoardReader>,
    /// Bit i is set if the block from i + 1 hosts away was found there.
    pub seen_early: u64,
    /// Bit i is set while the block from i + 1 hosts away is missing.
    pub missing: u64,
    /// Blocks that have arrived, indexed by distance in hosts minus one.
    pub posted: [Posted; SPAN_MAX],
}

/// An open group.
pub struct Group {
    pub id: u32,
    pub board: usize,
    /// The members, in the order of the hosts.
    pub ranks: Vec<u32>,
    pub me: usize,
    pub streams: [Stream; 2],
    /// The block of this rank; empty if the rank has failed.
    pub mine: Vec<u8>,
    pub has_block: bool,
    /// The loss of a member, if any: the group makes no further allgathers.
    pub lost: Option<PeerLoss>,
}

impl Stream {
    /// Marks all blocks as missing.
    pub fn begin(&mut self) {
        (self.missing, self.seen_early) = ((1 << self.span) - 1, 0);
        self.view.iter_mut().for_each(BoardReader::turn);
    }
}

impl Group {
    /// Returns the member whose block arrives from `hops` hosts away.
    pub fn origin(&self, rightward: bool, hops: usize) -> usize {
        let size = self.ranks.len();
        (self.me + if rightward { size - hops } else { hops }) % size
    }

    /// Returns the error of an allgather that failed because of a member.
    pub fn wrong(&self, member: usize, what: &'static str) -> EndpointError {
        EndpointError::Allgather { src: self.ranks[member], group: self.id, what }
    }

    pub fn is_complete(&self) -> bool {
        self.streams.iter().all(|s| s.missing == 0)
    }

    /// Begins the next allgather with this rank's block; None if the rank has failed.
    pub fn begin(&mut self, block: Option<&[u8]>) {
        self.mine.clear();
        self.mine.extend_from_slice(block.unwrap_or_default());
        self.has_block = block.is_some();
    }

    /// Returns the nearest member on either side whose block is missing. Members behind it may be waiting for it
    /// themselves.
    pub fn missing(&self) -> Vec<u32> {
        let nearest = |(s, rightward): (&Stream, bool)| {
            let hops = s.missing.trailing_zeros() as usize + 1;
            (s.missing != 0).then(|| self.ranks[self.origin(rightward, hops)])
        };
        self.streams.iter().zip(RIGHTWARD).filter_map(nearest).collect()
    }
}
