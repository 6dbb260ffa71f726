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

    /// Returns this rank's neighbours on the two paths from a root, each of which covers half of the ring.
    pub fn ways(&self, root: u32) -> PathNeighbours {
        let right = (self.rank + self.ranks - root % self.ranks) % self.ranks;
        let left = (self.ranks - right) % self.ranks;
        let side = if right <= self.reach(Side::Right) { Side::Right } else { Side::Left };
        let mut further = [None; 2];
        if right < self.reach(Side::Right) {
            further[0] = Some(self.ahead(Side::Right, 1));
        }
        if left < self.reach(Side::Left) {
            further[1] = Some(self.ahead(Side::Left, 1));
        }
        PathNeighbours { nearer: (right > 0).then(|| self.behind(side, 1)), further }
    }
}

/// A rank's neighbours on the two paths from a root.
#[derive(Clone, Copy, Debug)]
pub struct PathNeighbours {
    /// The neighbour towards the root; None at the root.
    pub nearer: Option<u32>,
    /// The neighbours away from the root.
    pub further: [Option<u32>; 2],
}
