//! Allgather: each rank's block is passed on in both directions, until it has reached all ranks. An allreduce of a short
//! vector gathers all vectors, and every rank computes the same result in the same order.

use crate::ring::{Ring, Side};
use crate::schedule::{phase, Buffer, Place, Step, Table};

#[derive(Clone, Copy, Debug)]
pub struct Allgather {
    ring: Ring,
    elements: u64,
    /// Buffer in which the blocks are gathered.
    gathered: Buffer,
    in_place: bool,
}

impl Allgather {
    pub fn new(ring: Ring, elements: u64, in_place: bool) -> Allgather {
        Allgather { ring, elements, gathered: Buffer::Output, in_place }
    }

    pub fn reduced(ring: Ring, elements: u64) -> Allgather {
        Allgather { ring, elements, gathered: Buffer::Scratch, in_place: false }
    }

    fn block(&self, rank: u32) -> Place {
        Place::new(self.gathered, u64::from(rank) * self.elements)
    }

    fn hops(&self) -> u32 {
        self.ring.reach(Side::Right)
    }

    fn arriving(&self, side: Side, hop: u32) -> u32 {
        2 * (hop - 1) + side as u32
    }

    fn leaving(&self, side: Side, hop: u32) -> u32 {
        2 * (self.hops() + hop) + side as u32
    }

    /// Returns the reduction's step for the vector of `rank`; the last one's is the first.
    fn combine(&self, rank: u32) -> Step {
        let (from, to, count) = (self.block(rank), Place::new(Buffer::Output, 0), self.elements);
        match rank == self.ring.ranks - 1 {
            true => Step::Copy { from, to, count },
            false => Step::Reduce { from, to, count },
        }
    }
}

impl Table for Allgather {
    const SLOTS: u32 = 4;

    fn rounds(&self) -> u64 {
        let reductions = if self.gathered == Buffer::Scratch { self.ring.ranks } else { 0 };
        u64::from(1 + self.hops() + (self.hops() + 1) + self.hops() + reductions)
    }

    fn step(&self, round: u64, slot: u32) -> Option<Step> {
        let (ring, count, hops) = (&self.ring, self.elements, self.hops());
        let side = Side::BOTH[slot as usize / 2];
        let reach = ring.reach(side);
        let first = slot % 2 == 0;
        match phase(round, [1, hops, hops + 1, hops]) {
            (0, _) => {
                let (from, to) = (Place::new(Buffer::Input, 0), self.block(ring.rank));
                (slot == 0 && !self.in_place).then_some(Step::Copy { from, to, count })
            }
            (1, i) => {
                let hop = i + 1;
                let (from, to) = (ring.behind(side, 1), self.block(ring.behind(side, hop)));
                (first && hop <= reach).then(|| Step::Receive { from, to, count, request: self.arriving(side, hop) })
            }
            // The block that has come `hop` hops arrives and goes on.
            (2, hop) if first => {
                (hop > 0 && hop <= reach).then(|| Step::Received { request: self.arriving(side, hop), count })
            }
            (2, hop) => {
                let (to, from) = (ring.ahead(side, 1), self.block(ring.behind(side, hop)));
                (hop < reach).then(|| Step::Send { to, from, count, request: self.leaving(side, hop) })
            }
            (3, hop) => (first && hop < reach).then(|| Step::Sent { request: self.leaving(side, hop) }),
            (_, _) => {
                let done = (round - u64::from(3 * hops + 2)) as u32;
                (slot == 0).then(|| self.combine(ring.ranks - 1 - done))
            }
        }
    }

    fn scratch(&self) -> u64 {
        match self.gathered {
            Buffer::Scratch => u64::from(self.ring.ranks) * self.elements,
            _ => 0,
        }
    }

    fn requests(&self) -> u32 {
        4 * self.hops()
    }
}
