//! Broadcast: the root sends segments of its vector in both directions, and every rank passes them on: whole segments as
//! far as half-way round, or half of each segment all the way round, which takes more hops and half of the bandwidth.

use crate::ring::Streams;
use crate::segments::{Segments, REQUESTS};
use crate::step::{Buffer, Place, Step, Table};

#[derive(Clone, Copy, Debug)]
pub struct Broadcast {
    streams: Streams,
    segments: Segments,
}

impl Broadcast {
    pub fn new(streams: Streams, elements: u64, most: u64) -> Broadcast {
        Broadcast { streams, segments: Segments::new(elements, most) }
    }

    /// Returns the place and the length of the part of a segment that a stream carries.
    fn part(&self, side: u32, segment: u64) -> (Place, u64) {
        let (begin, length) = (self.segments.begin(segment), self.segments.length(segment));
        let (begin, count) = self.streams.part(side as usize, begin, length);
        (Place::new(Buffer::Output, begin), count)
    }
}

impl Table for Broadcast {
    fn phase(&self, phase: u32) -> Option<(u64, u32)> {
        self.segments.phase(phase, [2, 8, 2], self.streams.lag())
    }

    fn step(&self, phase: u32, round: u64, slot: u32) -> Option<Step> {
        // The slots of each stream.
        let slots = if phase == 1 { 4 } else { 1 };
        let (side, slot) = (slot / slots, slot % slots);
        let (segments, way) = (&self.segments, self.streams.ways[side as usize]?);
        let turn = segments.turn(phase, round, way.rounds());
        let [arriving, leaving] = [2 * side, 2 * side + 1];
        match (phase, slot) {
            (1, 0) => {
                way.nearer?;
                let now = turn.now?;
                Some(Step::Received { request: segments.request(arriving, now), count: self.part(side, now).1 })
            }
            (0, _) | (1, 1) => {
                let (from, next) = (way.nearer?, turn.next?);
                let (to, count) = self.part(side, next);
                Some(Step::Receive { from, to, count, request: segments.request(arriving, next) })
            }
            (1, 3) => {
                let (to, now) = (way.further?, turn.now?);
                let (from, count) = self.part(side, now);
                Some(Step::Send { to, from, count, request: segments.request(leaving, now) })
            }
            (_, _) => {
                way.further?;
                Some(Step::Sent { request: segments.request(leaving, turn.past?) })
            }
        }
    }

    fn scratch(&self) -> u64 {
        0
    }

    fn requests(&self) -> u32 {
        REQUESTS
    }
}
