//! Broadcast: the root sends segments of its vector in both directions, and every rank passes them on.

use crate::ring::PathNeighbours;
use crate::segments::{Segments, DEPTH};
use crate::step::{Buffer, Place, Step, Table};

#[derive(Clone, Copy, Debug)]
pub struct Broadcast {
    paths: PathNeighbours,
    segments: Segments,
}

impl Broadcast {
    pub fn new(paths: PathNeighbours, elements: u64, most: u64) -> Broadcast {
        Broadcast { paths, segments: Segments::new(elements, most) }
    }

    fn place(&self, segment: u64) -> Place {
        Place::new(Buffer::Output, self.segments.begin(segment))
    }
}

impl Table for Broadcast {
    fn phase(&self, phase: u32) -> Option<(u64, u32)> {
        self.segments.phase(phase, [1, 6, 2])
    }

    fn step(&self, phase: u32, round: u64, slot: u32) -> Option<Step> {
        let segments = &self.segments;
        let turn = segments.turn(phase, round);
        let slot = match phase {
            0 => 1,
            1 => slot,
            _ => 2 + 2 * slot,
        };
        // Stream 0 arrives from the root, streams 1 and 2 go on.
        match slot {
            0 => {
                self.paths.nearer?;
                let now = turn.now?;
                Some(Step::Received { request: segments.request(0, now), count: segments.length(now) })
            }
            1 => {
                let (from, next) = (self.paths.nearer?, turn.next?);
                let (to, count) = (self.place(next), segments.length(next));
                Some(Step::Receive { from, to, count, request: segments.request(0, next) })
            }
            _ => {
                let way = (slot - 2) / 2;
                let to = self.paths.further[way as usize]?;
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
