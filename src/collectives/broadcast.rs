//! Broadcast: the root sends segments of its vector in both directions, and every rank passes them on.

use crate::ring::Ways;
use crate::schedule::{Buffer, Place, Step, Table};
use crate::DEPTH;

/// A vector that is cut into segments, some of which are under way at a time: a software pipeline.
#[derive(Clone, Copy, Debug)]
pub struct Segments {
    pub elements: u64,
    /// Elements of a segment.
    pub most: u64,
}

/// The segments of one round of a pipeline: the one to be received next, the one that arrives now, and the one that was
/// sent last with the same request.
pub struct Turn {
    pub next: Option<u64>,
    pub now: Option<u64>,
    pub past: Option<u64>,
}

impl Segments {
    pub fn number(&self) -> u64 {
        self.elements.div_ceil(self.most)
    }

    /// Returns the number of segments under way in each direction.
    pub fn depth(&self) -> u64 {
        self.number().min(DEPTH)
    }

    /// Returns the number of rounds. The first rounds only begin receives, the last ones only wait for sends.
    pub fn rounds(&self) -> u64 {
        self.number() + 2 * self.depth()
    }

    pub fn turn(&self, round: u64) -> Turn {
        let segment = |late: u64| round.checked_sub(late).filter(|&segment| segment < self.number());
        Turn { next: segment(0), now: segment(self.depth()), past: segment(2 * self.depth()) }
    }

    pub fn begin(&self, segment: u64) -> u64 {
        segment * self.most
    }

    pub fn length(&self, segment: u64) -> u64 {
        self.most.min(self.elements - self.begin(segment))
    }

    /// Returns the request for a segment in one of three streams.
    pub fn request(&self, stream: u32, segment: u64) -> u32 {
        stream * DEPTH as u32 + (segment % self.depth()) as u32
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Broadcast {
    ways: Ways,
    segments: Segments,
}

impl Broadcast {
    pub fn new(ways: Ways, elements: u64, most: u64) -> Broadcast {
        Broadcast { ways, segments: Segments { elements, most } }
    }

    fn place(&self, segment: u64) -> Place {
        Place::new(Buffer::Output, self.segments.begin(segment))
    }
}

impl Table for Broadcast {
    const SLOTS: u32 = 6;

    fn rounds(&self) -> u64 {
        self.segments.rounds()
    }

    fn step(&self, round: u64, slot: u32) -> Option<Step> {
        let segments = &self.segments;
        let turn = segments.turn(round);
        // Stream 0 arrives from the root, streams 1 and 2 go on.
        match slot {
            0 => {
                self.ways.nearer?;
                let now = turn.now?;
                Some(Step::Received { request: segments.request(0, now), count: segments.length(now) })
            }
            1 => {
                let (from, next) = (self.ways.nearer?, turn.next?);
                let (to, count) = (self.place(next), segments.length(next));
                Some(Step::Receive { from, to, count, request: segments.request(0, next) })
            }
            _ => {
                let way = (slot - 2) / 2;
                let to = self.ways.further[way as usize]?;
                if slot % 2 == 0 {
                    return Some(Step::Sent { request: segments.request(1 + way, turn.past?) });
                }
                let now = turn.now?;
                let (from, count) = (self.place(now), segments.length(now));
                Some(Step::Send { to, from, count, request: segments.request(1 + way, now) })
            }
        }
    }

    fn scratch(&self) -> u64 {
        0
    }

    fn requests(&self) -> u32 {
        3 * DEPTH as u32
    }
}
