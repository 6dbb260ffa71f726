//! Reduce: the reverse of a broadcast. Segments, or halves of them, move along the same streams to the root, and every
//! rank adds its contribution.

use crate::ring::{Carry, Streams, Way};
use crate::segments::{Segments, DEPTH, REQUESTS};
use crate::step::{Buffer, Place, Step, Table};

#[derive(Clone, Copy, Debug)]
pub struct Reduce {
    streams: Streams,
    segments: Segments,
    in_place: bool,
}

impl Reduce {
    pub fn new(streams: Streams, elements: u64, most: u64, in_place: bool) -> Reduce {
        Reduce { streams: streams.reversed(), segments: Segments::new(elements, most), in_place }
    }

    /// Returns the begin and the length of the part of a segment that a stream carries.
    fn part(&self, side: u32, segment: u64) -> (u64, u64) {
        self.streams.part(side as usize, self.segments.begin(segment), self.segments.length(segment))
    }

    /// Number of segments for which there is scratch memory: a segment's is in use until the sum has been sent on.
    fn kept(&self) -> u64 {
        self.segments.number().min(2 * DEPTH)
    }

    /// Returns the scratch memory for the part of a segment that a stream carries.
    fn received(&self, side: u32, way: &Way, segment: u64) -> Place {
        let span = self.segments.span();
        let before = match self.streams.carry {
            // Only the root receives from both sides.
            Carry::Whole if way.nearer.is_none() => u64::from(side) * self.kept() * span,
            Carry::Whole => 0,
            // The second halves of all segments begin at the same place in their memory, since those of another, shorter
            // segment may be there at the same time.
            Carry::Halves => self.streams.part(side as usize, 0, span).0,
        };
        Place::new(Buffer::Scratch, before + segment % self.kept() * span)
    }

    /// Returns the step with which the root begins with a segment: its own contribution.
    fn begin(&self, round: u64) -> Option<Step> {
        let is_root = self.streams.ways.iter().flatten().any(|way| way.nearer.is_none());
        let now = self.segments.turn(1, round, 0).now?;
        let place = |buffer| Place::new(buffer, self.segments.begin(now));
        let (from, to, count) = (place(Buffer::Input), place(Buffer::Output), self.segments.length(now));
        (is_root && !self.in_place).then_some(Step::Copy { from, to, count })
    }
}

impl Table for Reduce {
    fn phase(&self, phase: u32) -> Option<(u64, u32)> {
        self.segments.phase(phase, [2, 11, 2], self.streams.lag())
    }

    fn step(&self, phase: u32, round: u64, slot: u32) -> Option<Step> {
        let (side, slot) = match (phase, slot) {
            (1, 0) => return self.begin(round),
            (1, slot) => ((slot - 1) / 5, (slot - 1) % 5),
            (_, side) => (side, 0),
        };
        let (segments, way) = (&self.segments, self.streams.ways[side as usize]?);
        let turn = segments.turn(phase, round, way.rounds());
        let [arriving, leaving] = [2 * side, 2 * side + 1];
        match (phase, slot) {
            (0, _) | (1, 4) => {
                let (from, next) = (way.further?, turn.next?);
                let (to, count) = (self.received(side, &way, next), self.part(side, next).1);
                Some(Step::Receive { from, to, count, request: segments.request(arriving, next) })
            }
            (1, 1) => {
                way.further?;
                let now = turn.now?;
                Some(Step::Received { request: segments.request(arriving, now), count: self.part(side, now).1 })
            }
            (1, 2) => {
                way.further?;
                let now = turn.now?;
                let (received, (begin, count)) = (self.received(side, &way, now), self.part(side, now));
                Some(match way.nearer {
                    None => Step::Reduce { from: received, to: Place::new(Buffer::Output, begin), count },
                    Some(_) => Step::Reduce { from: Place::new(Buffer::Input, begin), to: received, count },
                })
            }
            (1, 3) => {
                let (to, now) = (way.nearer?, turn.now?);
                let (begin, count) = self.part(side, now);
                let from = match way.further {
                    None => Place::new(Buffer::Input, begin),
                    Some(_) => self.received(side, &way, now),
                };
                Some(Step::Send { to, from, count, request: segments.request(leaving, now) })
            }
            (_, _) => {
                way.nearer?;
                Some(Step::Sent { request: segments.request(leaving, turn.past?) })
            }
        }
    }

    fn scratch(&self) -> u64 {
        let received = self.streams.ways.iter().flatten().filter(|way| way.further.is_some()).count() as u64;
        let rows = if self.streams.carry == Carry::Whole { received } else { received.min(1) };
        rows * self.kept() * self.segments.span()
    }

    fn requests(&self) -> u32 {
        REQUESTS
    }
}
