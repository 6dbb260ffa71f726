//! Allgather: each rank's block is passed on in both directions, until it has reached all ranks. An allreduce of a
//! short vector gathers all vectors, and every rank computes the same result in the same order.

use crate::ring::{Ring, Side};
use crate::step::{Buffer, Place, Step, Table};

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
    fn phase(&self, phase: u32) -> Option<(u64, u32)> {
        let hops = u64::from(self.hops());
        match phase {
            0 => Some((u64::from(!self.in_place), 1)),
            1 => Some((hops, 2)),
            2 => Some((hops + 1, 4)),
            3 => Some((hops, 2)),
            4 if self.gathered == Buffer::Scratch => Some((u64::from(self.ring.ranks), 1)),
            _ => None,
        }
    }

    fn step(&self, phase: u32, round: u64, slot: u32) -> Option<Step> {
        let (ring, count, round) = (&self.ring, self.elements, round as u32);
        let side = Side::of(if phase == 2 { slot / 2 } else { slot });
        let reach = ring.reach(side);
        match (phase, round) {
            (0, _) => Some(Step::Copy { from: Place::new(Buffer::Input, 0), to: self.block(ring.rank), count }),
            (1, before) => {
                let hop = before + 1;
                let (from, to) = (ring.behind(side, 1), self.block(ring.behind(side, hop)));
                (hop <= reach).then(|| Step::Receive { from, to, count, request: self.arriving(side, hop) })
            }
            // The block that has come `hop` hops arrives and goes on.
            (2, hop) if slot.is_multiple_of(2) => {
                (hop > 0 && hop <= reach).then(|| Step::Received { request: self.arriving(side, hop), count })
            }
            (2, hop) => {
                let (to, from) = (ring.ahead(side, 1), self.block(ring.behind(side, hop)));
                (hop < reach).then(|| Step::Send { to, from, count, request: self.leaving(side, hop) })
            }
            (3, hop) => (hop < reach).then(|| Step::Sent { request: self.leaving(side, hop) }),
            (_, done) => Some(self.combine(ring.ranks - 1 - done)),
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
