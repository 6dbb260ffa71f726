//! Neighbours and distances in a ring of ranks.

/// A rank's position in a ring.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    pub ranks: u32,
    pub rank: u32,
}

/// A direction in which data moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Right,
    Left,
}

impl Side {
    /// Returns the side with a number.
    pub fn of(number: u32) -> Side {
        if number == 0 {
            Side::Right
        } else {
            Side::Left
        }
    }
}

impl Ring {
    /// Returns the rank that is `hops` hops away in a direction, `hops` being at most the number of ranks.
    pub fn ahead(&self, side: Side, hops: u32) -> u32 {
        let rank = self.rank + if side == Side::Right { hops } else { self.ranks - hops };
        // Cheaper than a division.
        rank - if rank < self.ranks { 0 } else { self.ranks }
    }

    /// Returns the rank that is `hops` hops away against a direction.
    pub fn behind(&self, side: Side, hops: u32) -> u32 {
        let back = if side == Side::Right { Side::Left } else { Side::Right };
        self.ahead(back, hops)
    }

    /// Returns the number of hops to the farthest rank in a direction, when each direction covers half of the ring.
    pub fn reach(&self, side: Side) -> u32 {
        if side == Side::Right {
            self.ranks / 2
        } else {
            (self.ranks - 1) / 2
        }
    }

    /// Returns this rank's part in the two streams from a root.
    pub fn streams(&self, root: u32, carry: Carry) -> Streams {
        let right = (self.rank + self.ranks - root % self.ranks) % self.ranks;
        let left = (self.ranks - right) % self.ranks;
        let way = |side: Side| {
            let (hops, other) = if side == Side::Right { (right, left) } else { (left, right) };
            let (reach, lag) = match carry {
                Carry::Whole => (self.reach(side), 0),
                Carry::Halves => (self.ranks - 1, hops.saturating_sub(other)),
            };
            (hops <= reach).then(|| Way {
                nearer: (hops > 0).then(|| self.behind(side, 1)),
                further: (hops < reach).then(|| self.ahead(side, 1)),
                lag,
            })
        };
        Streams { ways: [way(Side::Right), way(Side::Left)], carry }
    }
}

/// The share of a vector that a stream carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carry {
    /// All of it, over half of the ring.
    Whole,
    /// One half of each segment, all the way round.
    Halves,
}

/// A rank's part in two streams between a root and all other ranks, one on each side of the root.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    /// The part in each stream; None if it does not come here.
    pub ways: [Option<Way>; 2],
    pub carry: Carry,
}

/// A rank's part in a stream.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// The neighbour towards the root; None at the root.
    pub nearer: Option<u32>,
    /// The neighbour away from the root; None at the end.
    pub further: Option<u32>,
    /// Number of hops by which this stream is longer up to here than the other one.
    pub lag: u32,
}

impl Streams {
    /// Returns the streams in the opposite direction, towards the root.
    pub fn reversed(mut self) -> Streams {
        if let [Some(right), Some(left)] = &mut self.ways {
            std::mem::swap(&mut right.lag, &mut left.lag);
        }
        self
    }

    /// Returns the number of rounds after which the later stream comes here.
    pub fn lag(&self) -> u64 {
        self.ways.iter().flatten().map(Way::rounds).max().unwrap_or(0)
    }

    /// Returns the begin and the length of the part of a segment that a stream carries.
    pub fn part(&self, side: usize, begin: u64, length: u64) -> (u64, u64) {
        match (self.carry, side) {
            (Carry::Whole, _) => (begin, length),
            (Carry::Halves, 0) => (begin, length - length / 2),
            (Carry::Halves, _) => (begin + length - length / 2, length / 2),
        }
    }
}

impl Way {
    /// Returns the number of rounds by which this stream comes later than the other one. A segment is at the next rank one
    /// round and the latency later, which is taken for half a round. If it were less, ranks would wait for one stream
    /// while segments of the other one have come.
    pub fn rounds(&self) -> u64 {
        u64::from(self.lag) * 3 / 2
    }
}
