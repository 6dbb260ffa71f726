//! What a rank knows of a group, and of its sharing that goes on.

use super::RIGHTWARD;
use crate::EndpointError;
use ntbring_queue::Posted;
use ntbring_ring::topology::HOSTS_MAX;
use ntbring_ring::Loss;

/// The furthest that a block goes.
pub const REACH_MAX: usize = HOSTS_MAX / 2;

/// The blocks of one direction.
pub struct Stream {
    /// Hosts that they pass.
    pub reach: usize,
    /// Whom they go to, and whom they come from: indices of what [`super::Groups`] has of that direction.
    pub to: usize,
    pub from: usize,
    /// Bit i: the block from i + 1 hosts away has not come.
    pub missing: u16,
    /// What has come, by hosts away less one.
    pub posted: [Posted; REACH_MAX],
}

/// A group that is open.
pub struct Group {
    pub id: u32,
    pub board: usize,
    /// In the order of the hosts.
    pub ranks: Vec<u32>,
    pub me: usize,
    pub streams: [Stream; 2],
    /// The block of this rank, if it has given one.
    pub mine: Vec<u8>,
    pub has_block: bool,
    /// How one of its members was lost, if one was: it shares nothing any more.
    pub lost: Option<Loss>,
}

impl Stream {
    /// The blocks are yet to come.
    pub fn begin(&mut self) {
        self.missing = (1 << self.reach) - 1;
    }
}

impl Group {
    /// The member whose block has come from so many hosts away.
    pub fn origin(&self, rightward: bool, hops: usize) -> usize {
        let size = self.ranks.len();
        (self.me + if rightward { size - hops } else { hops }) % size
    }

    /// The error of a sharing that has failed because of a member.
    pub fn wrong(&self, member: usize, what: &'static str) -> EndpointError {
        EndpointError::Sharing { src: self.ranks[member], group: self.id, what }
    }

    pub fn is_complete(&self) -> bool {
        self.streams.iter().all(|s| s.missing == 0)
    }

    /// Begins the next sharing, with this rank's block, or none if the rank has failed.
    pub fn begin(&mut self, block: Option<&[u8]>) {
        self.mine.clear();
        self.mine.extend_from_slice(block.unwrap_or_default());
        self.has_block = block.is_some();
    }

    /// Of the members whose blocks are missing, the nearest on either side: who is behind them may wait
    /// for them.
    pub fn missing(&self) -> Vec<u32> {
        let nearest = |(s, rightward): (&Stream, bool)| {
            let hops = s.missing.trailing_zeros() as usize + 1;
            (s.missing != 0).then(|| self.ranks[self.origin(rightward, hops)])
        };
        self.streams.iter().zip(RIGHTWARD).filter_map(nearest).collect()
    }
}
