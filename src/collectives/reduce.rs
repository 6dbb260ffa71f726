//! Reduce: the reverse of a broadcast. Both halves of the ring are reduced towards the root, in segments.

use crate::ring::PathNeighbours;
use crate::segments::{Segments, DEPTH};
use crate::step::{Buffer, Place, Step, Table};

#[derive(Clone, Copy, Debug)]
pub struct Reduce {
    paths: PathNeighbours,
    segments: Segments,
    in_place: bool,
}

impl Reduce {
    pub fn new(paths: PathNeighbours, elements: u64, most: u64, in_place: bool) -> Reduce {
        Reduce { paths, segments: Segments::new(elements, most), in_place }
    }

    fn at(&self, buffer: Buffer, segment: u64) -> Place {
        Place::new(buffer, self.segments.begin(segment))
    }

    /// Number of segments for which there is scratch memory: a segment's is in use until the sum has been sent on.
    fn kept(&self) -> u64 {
        self.segments.number().min(2 * DEPTH)
    }

    fn received(&self, segment: u64, way: u32) -> Place {
        // Only the root receives on both paths.
        let row = if self.paths.nearer.is_some() { 0 } else { u64::from(way) };
        Place::new(Buffer::Scratch, (row * self.kept() + segment % self.kept()) * self.segments.span())
    }

    /// Returns the way on which this rank receives, if it is not the root.
    fn inner(&self) -> Option<u32> {
        self.paths.further.iter().position(Option::is_some).map(|way| way as u32)
    }
}

impl Table for Reduce {
    fn phase(&self, phase: u32) -> Option<(u64, u32)> {
        self.segments.phase(phase, [2, 9, 1])
    }

    fn step(&self, phase: u32, round: u64, slot: u32) -> Option<Step> {
        let segments = &self.segments;
        let turn = segments.turn(phase, round);
        let slot = if phase == 0 { slot + 7 } else { slot };
        // Streams 0 and 1 arrive, stream 2 goes to the root.
        match slot {
            0 => {
                self.paths.nearer?;
                Some(Step::Sent { request: segments.request(2, turn.past?) })
            }
            1 if self.paths.nearer.is_none() && !self.in_place => {
                let now = turn.now?;
                let (from, to) = (self.at(Buffer::Input, now), self.at(Buffer::Output, now));
                Some(Step::Copy { from, to, count: segments.length(now) })
            }
            2..=5 => {
                let way = (slot - 2) / 2;
                self.paths.further[way as usize]?;
                let now = turn.now?;
                let count = segments.length(now);
                if slot % 2 == 0 {
                    return Some(Step::Received { request: segments.request(way, now), count });
                }
                let received = self.received(now, way);
                Some(match self.paths.nearer {
                    None => Step::Reduce { from: received, to: self.at(Buffer::Output, now), count },
                    Some(_) => Step::Reduce { from: self.at(Buffer::Input, now), to: received, count },
                })
            }
            6 => {
                let (to, now) = (self.paths.nearer?, turn.now?);
                let from = self.inner().map_or(self.at(Buffer::Input, now), |way| self.received(now, way));
                Some(Step::Send { to, from, count: segments.length(now), request: segments.request(2, now) })
            }
            7 | 8 => {
                let way = slot - 7;
                let (from, next) = (self.paths.further[way as usize]?, turn.next?);
                let (to, count) = (self.received(next, way), segments.length(next));
                Some(Step::Receive { from, to, count, request: segments.request(way, next) })
            }
            _ => None,
        }
    }

    fn scratch(&self) -> u64 {
        self.paths.further.iter().flatten().count() as u64 * self.kept() * self.segments.span()
    }

    fn requests(&self) -> u32 {
        3 * DEPTH as u32
    }
}
