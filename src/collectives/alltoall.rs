//! Alltoall of 4 or 5 ranks: each rank sends to each neighbour the block for it and the block for the rank beyond it,
//! and the neighbour passes the latter on. On a ring of four, the block for the opposite rank goes right.

use crate::ring::{Ring, Side};
use crate::step::{Buffer, Place, Step, Table};

#[derive(Clone, Copy, Debug)]
pub struct Alltoall {
    ring: Ring,
    elements: u64,
}

/// Streams of blocks in one direction, each of which has a request.
#[derive(Clone, Copy)]
enum Stream {
    /// Blocks that this rank passes on.
    Transit,
    FromNear,
    FromFar,
    ToNear,
    ToFar,
    PassedOn,
}

use Stream::{FromFar, FromNear, PassedOn, ToFar, ToNear, Transit};

impl Alltoall {
    pub fn new(ring: Ring, elements: u64) -> Alltoall {
        Alltoall { ring, elements }
    }

    fn block(&self, buffer: Buffer, of: u32) -> Place {
        Place::new(buffer, u64::from(of) * self.elements)
    }

    /// Returns true if blocks are passed on in a direction.
    fn passes_on(&self, side: Side) -> bool {
        side == Side::Right || self.ring.ranks > 4
    }

    fn receive(&self, stream: Stream, side: Side) -> Step {
        let to = match stream {
            FromNear => self.block(Buffer::Output, self.ring.behind(side, 1)),
            FromFar => self.block(Buffer::Output, self.ring.behind(side, 2)),
            _ => self.block(Buffer::Scratch, side as u32),
        };
        let request = Self::request(stream, side);
        Step::Receive { from: self.ring.behind(side, 1), to, count: self.elements, request }
    }

    fn send(&self, stream: Stream, side: Side) -> Step {
        let from = match stream {
            ToNear => self.block(Buffer::Input, self.ring.ahead(side, 1)),
            ToFar => self.block(Buffer::Input, self.ring.ahead(side, 2)),
            _ => self.block(Buffer::Scratch, side as u32),
        };
        let request = Self::request(stream, side);
        Step::Send { to: self.ring.ahead(side, 1), from, count: self.elements, request }
    }

    fn received(&self, stream: Stream, side: Side) -> Step {
        Step::Received { request: Self::request(stream, side), count: self.elements }
    }

    fn sent(&self, stream: Stream, side: Side) -> Step {
        Step::Sent { request: Self::request(stream, side) }
    }

    fn request(stream: Stream, side: Side) -> u32 {
        2 * stream as u32 + side as u32
    }
}

impl Table for Alltoall {
    fn phase(&self, phase: u32) -> Option<(u64, u32)> {
        // A phase is one round: receives, sends, passing on, the copy, waiting.
        let slots = [6, 4, 4, 1, 10];
        slots.get(phase as usize).map(|&slots| (1, slots))
    }

    fn step(&self, phase: u32, _: u64, slot: u32) -> Option<Step> {
        let (side, slot) = (Side::of(slot % 2), slot / 2);
        let far = self.passes_on(side);
        match (phase, slot) {
            (0, 0) => far.then(|| self.receive(Transit, side)),
            (0, 1) => Some(self.receive(FromNear, side)),
            (0, _) => far.then(|| self.receive(FromFar, side)),
            // The block to be passed on goes first, since another rank waits for it.
            (1, 0) => far.then(|| self.send(ToFar, side)),
            (1, _) => Some(self.send(ToNear, side)),
            (2, 0) => far.then(|| self.received(Transit, side)),
            (2, _) => far.then(|| self.send(PassedOn, side)),
            (3, _) => {
                let (from, to) =
                    (self.block(Buffer::Input, self.ring.rank), self.block(Buffer::Output, self.ring.rank));
                Some(Step::Copy { from, to, count: self.elements })
            }
            (_, 0) => Some(self.received(FromNear, side)),
            (_, 1) => far.then(|| self.received(FromFar, side)),
            (_, 2) => Some(self.sent(ToNear, side)),
            (_, 3) => far.then(|| self.sent(ToFar, side)),
            (_, _) => far.then(|| self.sent(PassedOn, side)),
        }
    }

    fn scratch(&self) -> u64 {
        if self.ring.ranks > 4 {
            2 * self.elements
        } else {
            self.elements
        }
    }

    fn requests(&self) -> u32 {
        12
    }
}
