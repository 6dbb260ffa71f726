//! What a rank knows of a group, and of its sharing that goes on.

use super::RIGHTWARD;
use crate::EndpointError;
use ntbring_queue::{BoardReader, CoreId, Posted};
use ntbring_ring::topology::HOSTS_MAX;
use ntbring_ring::Loss;

/// The furthest that a block goes.
pub const REACH_MAX: usize = HOSTS_MAX / 2;

/// Looks in a sharing that are worth more than a yield, as long as those who are awaited have other cores.
const LOOKS_ELSEWHERE: u32 = 256;

/// The blocks of one direction.
pub struct Stream {
    /// Hosts that they pass.
    pub reach: usize,
    /// Whom they go to, and whom they come from: indices of what [`super::Groups`] has of that direction.
    pub to: usize,
    pub from: usize,
    /// The board from which the origin takes what it passes on.
    pub beyond: Option<BoardReader>,
    /// Bit i: the block from i + 1 hosts away lies there.
    pub seen_beyond: u16,
    /// Bit i: the block from i + 1 hosts away has not come.
    pub missing: u16,
    /// What has come, by hosts away less one; of what is missing, what came in the sharing before.
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
    /// Where this rank ran when it gave it, and how often it may still look for the others' without a yield.
    pub core: CoreId,
    pub looks_elsewhere: u32,
    /// How one of its members was lost, if one was: it shares nothing any more.
    pub lost: Option<Loss>,
}

impl Stream {
    /// The blocks are yet to come.
    pub fn begin(&mut self) {
        (self.missing, self.seen_beyond) = ((1 << self.reach) - 1, 0);
        self.beyond.iter_mut().for_each(BoardReader::turn);
    }

    /// Whether all that give or pass on what is missing ran on other cores than this one, when they last said so.
    fn waits_elsewhere(&self, core: CoreId) -> bool {
        let furthest = (u16::BITS - self.missing.leading_zeros()) as usize;
        // What the neighbour has to pass on is seen before it does.
        let nearest = usize::from(self.beyond.is_some() && self.missing > 1 && self.missing & 1 == 0);
        self.posted[nearest..furthest].iter().all(|posted| posted.core.differs(core))
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

    /// The next sharing begins, with this block or none, on this core.
    pub fn begin(&mut self, block: Option<&[u8]>, core: CoreId) {
        self.mine.clear();
        self.mine.extend_from_slice(block.unwrap_or_default());
        (self.has_block, self.core, self.looks_elsewhere) = (block.is_some(), core, LOOKS_ELSEWHERE);
    }

    /// Whether this rank need not make room for those that it waits for, since they had other cores. Only so often in a sharing:
    /// others may want this one.
    pub fn waits_elsewhere(&mut self) -> bool {
        let waits = self.looks_elsewhere > 0 && self.streams.iter().all(|stream| stream.waits_elsewhere(self.core));
        self.looks_elsewhere -= u32::from(waits);
        waits
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

#[cfg(test)]
mod tests {
    use super::*;
    use ntbring_memory::{InWindow, Region};
    use ntbring_queue::{BoardPlan, PLACE};

    /// Of one direction, in which blocks have come from these cores and are missing as the bits say.
    fn stream(sees_beyond: bool, cores: &[usize], missing: u16) -> Stream {
        let plan = BoardPlan { places: 4, place_bytes: PLACE.0 };
        let board = || BoardReader::new(InWindow::new(Region::anonymous(plan.bytes())), plan);
        let mut posted = [Posted::default(); REACH_MAX];
        posted.iter_mut().zip(cores).for_each(|(posted, &core)| posted.core = CoreId::new(core));
        let beyond = sees_beyond.then(board);
        Stream { reach: cores.len(), to: 0, from: 0, beyond, seen_beyond: 0, missing, posted }
    }

    #[test]
    fn room_is_made_for_those_who_have_to_give_or_pass_on_what_is_missing() {
        let one = CoreId::new(1);
        for (sees_beyond, cores, missing, elsewhere) in [
            (false, &[0, 0, 1][..], 0b000, true),
            (false, &[0, 0, 1], 0b001, true),
            (false, &[0, 0, 1], 0b010, true),
            (false, &[0, 0, 1], 0b100, false),
            (false, &[1, 0, 0], 0b010, false),
            // It has given what is its own, and need not pass on anything...
            (true, &[1, 0, 0], 0b010, true),
            (true, &[1, 0, 0], 0b110, true),
            (true, &[1, 0, 0], 0b000, true),
            // ...but has to give, and others to pass on.
            (true, &[1, 0, 0], 0b001, false),
            (true, &[0, 1, 0], 0b100, false),
        ] {
            let found = stream(sees_beyond, cores, missing).waits_elsewhere(one);
            assert_eq!(found, elsewhere, "{sees_beyond} {cores:?} {missing:#b}");
            // Nobody knows where they are.
            let unknown = stream(sees_beyond, &[1 << 15; 3], missing).waits_elsewhere(one);
            assert_eq!(unknown, missing == 0, "{sees_beyond} {missing:#b}");
        }
    }

    #[test]
    fn room_is_made_in_the_end() {
        let streams = [stream(false, &[0], 1), stream(false, &[2], 0)];
        let mut group = Group {
            id: 1,
            board: 0,
            ranks: vec![0, 1, 2],
            me: 0,
            streams,
            mine: vec![],
            has_block: false,
            core: CoreId::default(),
            looks_elsewhere: 0,
            lost: None,
        };
        assert!(!group.waits_elsewhere());
        group.begin(None, CoreId::new(1));
        assert_eq!((0..2 * LOOKS_ELSEWHERE).filter(|_| group.waits_elsewhere()).count() as u32, LOOKS_ELSEWHERE);
        group.begin(None, CoreId::new(0));
        assert!(!group.waits_elsewhere());
    }
}
