//! The state of a group, and of its allgather in progress.

use super::direction::RIGHTWARD;
use crate::error::EndpointError;
use ntbring_queue::{BoardReader, CoreId, Posted};
use ntbring_ring::topology::HOSTS_MAX;
use ntbring_ring::PeerLoss;

/// Greatest distance, in hosts, that a block travels.
pub const SPAN_MAX: usize = HOSTS_MAX / 2;

/// Looks per allgather that replace yields, while the members that have to send missing blocks have other cores.
const LOOKS_WITHOUT_YIELD: u32 = 256;

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
    /// Blocks that have arrived, indexed by distance in hosts minus one; of missing blocks, those of the previous
    /// allgather.
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
    /// The core on which this rank began the allgather, and the remaining number of looks without a yield.
    pub core: CoreId,
    pub looks_without_yield: u32,
    /// The loss of a member, if any: the group makes no further allgathers.
    pub lost: Option<PeerLoss>,
}

impl Stream {
    /// Marks all blocks as missing.
    pub fn begin(&mut self) {
        (self.missing, self.seen_early) = ((1 << self.span) - 1, 0);
        self.view.iter_mut().for_each(BoardReader::turn);
    }

    /// True if all members that have to send or pass on missing blocks ran on other cores than `core` at their last
    /// post.
    fn waits_for_other_cores(&self, core: CoreId) -> bool {
        let furthest = (u64::BITS - self.missing.leading_zeros()) as usize;
        // The blocks that the neighbour has to pass on are seen in its mailbox before it does.
        let nearest = usize::from(self.view.is_some() && self.missing > 1 && self.missing & 1 == 0);
        self.posted[nearest..furthest].iter().all(|posted| posted.core.differs(core))
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

    /// Begins the next allgather with this rank's block, on `core`; None if the rank has failed.
    pub fn begin(&mut self, block: Option<&[u8]>, core: CoreId) {
        self.mine.clear();
        self.mine.extend_from_slice(block.unwrap_or_default());
        (self.has_block, self.core, self.looks_without_yield) = (block.is_some(), core, LOOKS_WITHOUT_YIELD);
    }

    /// True if this rank may look again without a yield, since the members that have to send missing blocks have other
    /// cores. The number of such looks per allgather is bounded, since another process may need this core.
    pub fn may_look_without_yield(&mut self) -> bool {
        let may = self.looks_without_yield > 0 && self.streams.iter().all(|s| s.waits_for_other_cores(self.core));
        self.looks_without_yield -= u32::from(may);
        may
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

#[cfg(test)]
mod tests {
    use super::*;
    use ntbring_memory::{InWindow, Region};
    use ntbring_queue::{BoardLayout, PLACE};

    /// Returns a stream whose blocks came from these cores in the previous allgather, with or without a view.
    fn stream(has_view: bool, cores: &[usize], missing: u64) -> Stream {
        let layout = BoardLayout { places: 4, place_bytes: PLACE.0 };
        let board = || BoardReader::new(InWindow::new(Region::anonymous(layout.bytes())), layout);
        let mut posted = [Posted::default(); SPAN_MAX];
        posted.iter_mut().zip(cores).for_each(|(posted, &core)| posted.core = CoreId::new(core));
        let view = has_view.then(board);
        Stream { span: cores.len(), to: 0, from: 0, view, seen_early: 0, missing, posted }
    }

    #[test]
    fn a_rank_yields_to_members_on_its_core_that_have_to_send_or_pass_on_missing_blocks() {
        let one = CoreId::new(1);
        for (has_view, cores, missing, expected) in [
            (false, &[0, 0, 1][..], 0b000, true),
            (false, &[0, 0, 1], 0b001, true),
            (false, &[0, 0, 1], 0b010, true),
            (false, &[0, 0, 1], 0b100, false),
            (false, &[1, 0, 0], 0b010, false),
            // The neighbour has sent its own block, and need not pass on any...
            (true, &[1, 0, 0], 0b010, true),
            (true, &[1, 0, 0], 0b110, true),
            (true, &[1, 0, 0], 0b000, true),
            // ...but it has to send its own, and others have to pass on.
            (true, &[1, 0, 0], 0b001, false),
            (true, &[0, 1, 0], 0b100, false),
        ] {
            let found = stream(has_view, cores, missing).waits_for_other_cores(one);
            assert_eq!(found, expected, "{has_view} {cores:?} {missing:#b}");
            let unknown = stream(has_view, &[1 << 15; 3], missing).waits_for_other_cores(one);
            assert_eq!(unknown, missing == 0, "{has_view} {missing:#b}");
        }
    }

    #[test]
    fn looks_without_a_yield_are_bounded() {
        let mut group = Group {
            id: 1,
            board: 0,
            ranks: vec![0, 1, 2],
            me: 0,
            streams: [stream(false, &[0], 1), stream(false, &[2], 0)],
            mine: vec![],
            has_block: false,
            core: CoreId::default(),
            looks_without_yield: 0,
            lost: None,
        };
        assert!(!group.may_look_without_yield());
        group.begin(None, CoreId::new(1));
        let looks = (0..2 * LOOKS_WITHOUT_YIELD).filter(|_| group.may_look_without_yield()).count();
        assert_eq!(looks as u32, LOOKS_WITHOUT_YIELD);
        group.begin(None, CoreId::new(0));
        assert!(!group.may_look_without_yield());
    }
}
