//! Allreduce of a long vector, which is divided into two parts for each rank, of which one moves right and the other
//! left: a reduce-scatter, and an allgather of the sums.

use crate::ring::{Ring, Side};
use crate::step::{Buffer, Place, Step, Table};

#[derive(Clone, Copy, Debug)]
pub struct Parts {
    ring: Ring,
    elements: u64,
    in_place: bool,
}

impl Parts {
    pub fn new(ring: Ring, elements: u64, in_place: bool) -> Parts {
        Parts { ring, elements, in_place }
    }

    fn last(&self) -> u32 {
        self.ring.ranks - 1
    }

    fn begin(&self, part: u32) -> u64 {
        (u128::from(part) * u128::from(self.elements) / u128::from(2 * self.ring.ranks)) as u64
    }

    /// Returns the begin and the length of the part that started `hops` hops back against a direction.
    fn part(&self, side: Side, hops: u32) -> (u64, u64) {
        let part = 2 * self.ring.behind(side, hops) + side as u32;
        let begin = self.begin(part);
        (begin, self.begin(part + 1) - begin)
    }

    /// The buffer of this rank's contribution. In place, partial sums overwrite the input, so it is copied first.
    fn mine(&self) -> Buffer {
        if self.in_place {
            Buffer::Scratch
        } else {
            Buffer::Input
        }
    }

    fn arriving(&self, side: Side, hops: u32) -> u32 {
        2 * hops + side as u32
    }

    fn leaving(&self, side: Side, hops: u32) -> u32 {
        2 * (self.ring.ranks + hops) + side as u32
    }

    fn receive(&self, side: Side, hops: u32) -> Step {
        let (begin, count) = self.part(side, hops);
        let (from, to) = (self.ring.behind(side, 1), Place::new(Buffer::Output, begin));
        Step::Receive { from, to, count, request: self.arriving(side, hops) }
    }

    fn received(&self, side: Side, hops: u32) -> Step {
        Step::Received { request: self.arriving(side, hops), count: self.part(side, hops).1 }
    }

    fn reduce(&self, side: Side, hops: u32) -> Step {
        let (begin, count) = self.part(side, hops);
        Step::Reduce { from: Place::new(self.mine(), begin), to: Place::new(Buffer::Output, begin), count }
    }

    fn send(&self, side: Side, hops: u32, buffer: Buffer) -> Step {
        let (begin, count) = self.part(side, hops);
        let (to, from) = (self.ring.ahead(side, 1), Place::new(buffer, begin));
        Step::Send { to, from, count, request: self.leaving(side, hops) }
    }

    fn sent(&self, side: Side, hops: u32) -> Step {
        Step::Sent { request: self.leaving(side, hops) }
    }
}

impl Table for Parts {
    fn phase(&self, phase: u32) -> Option<(u64, u32)> {
        let last = u64::from(self.last());
        match phase {
            0 => Some((u64::from(self.in_place), 1)),
            1 => Some((last, 2)),
            2 => Some((last + 1, 6)),
            3 | 4 => Some((last, 4)),
            5 => Some((last + 1, 2)),
            _ => None,
        }
    }

    fn step(&self, phase: u32, round: u64, slot: u32) -> Option<Step> {
        let (last, hops) = (self.last(), round as u32);
        // The slots of each side.
        let slots = match phase {
            2 => 3,
            3 | 4 => 2,
            _ => 1,
        };
        let (side, slot) = (Side::of(slot / slots), slot % slots);
        match (phase, slot) {
            (0, _) => {
                let (from, to) = (Place::new(Buffer::Input, 0), Place::new(Buffer::Scratch, 0));
                Some(Step::Copy { from, to, count: self.elements })
            }
            (1, _) => Some(self.receive(side, hops + 1)),
            // Reduce-scatter: each part moves round the ring and collects the contributions of all ranks. The rank
            // before the one at which it started completes the sum, and sends it on first.
            (2, 0) => (hops > 0).then(|| self.received(side, hops)),
            (2, 1) => (hops > 0).then(|| self.reduce(side, hops)),
            (2, _) => Some(self.send(side, hops, if hops > 0 { Buffer::Output } else { self.mine() })),
            // Allgather: the completed sums move round the ring and replace the partial sums in the output.
            (3, 0) => Some(self.sent(side, hops)),
            (3, _) => Some(self.receive(side, hops)),
            (4, 0) => Some(self.received(side, hops)),
            (4, _) => (hops < last - 1).then(|| self.send(side, hops, Buffer::Output)),
            (_, _) => (hops != last - 1).then(|| self.sent(side, hops)),
        }
    }

    fn scratch(&self) -> u64 {
        if self.in_place {
            self.elements
        } else {
            0
        }
    }

    fn requests(&self) -> u32 {
        4 * self.ring.ranks
    }
}
