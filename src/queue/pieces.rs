//! Gaits: how something large streams through a lane in memory that both its ends have in their caches.
//!
//! The lines of a lane go to and fro between two cores. They do so faster if they are still in the core's nearest cache
//! when their turn comes again, and until then the core reads and writes as many other bytes as well. So the lap has to
//! be less than half of that cache, which mostly has 32 KiB.
//!
//! Therefore pieces of something large turn back to the lane's first line early, *if* the consumer is known to have left what
//! they overwrite; otherwise they go on, and a consumer that does not keep up still has all of the lane. To the consumer
//! that is a filling like any other, only longer. To know in time what it has left, pieces *ask*: the head is returned
//! when they are released, not only after half a lane. Nothing else asks, so small messages return no more heads than ever.
//!
//! Where that is not faster, pieces go on, too: see [`pace`](super::pace), which chooses the gait.
//!
//! What lies beyond a short lap may be older than a lap. The producer counts it as stale, as it does with all lines of a filling.

use super::pace::{Pace, GAITS};
use super::{lines_for, Producer, Slot};
use std::time::Instant;

/// How pieces go round.
#[derive(Clone, Copy)]
struct Gait {
    /// Lines after which a lap ends if it can; None: with the lane.
    lap: Option<usize>,
    /// The most bytes of a piece.
    piece: usize,
}

/// In short laps pieces are large enough not to count beside their copying, and small enough for several in a lap: a lap is three
/// pieces, and the small entries between one stream and the next.
const SHORT: Gait = Gait { lap: Some(208), piece: 4096 };

/// What the pace chooses from.
const ALL: [Gait; GAITS] = [Gait { lap: None, piece: usize::MAX }, Gait { lap: None, piece: 16 << 10 }, SHORT];

/// How the pieces of one lane go round.
pub(super) struct Laps {
    gait: Gait,
    /// What chooses it.
    pace: Option<Pace>,
}

impl Laps {
    /// Takes note of a filling of so many lines.
    pub(super) fn filled(&mut self, tail: u64, lines: usize) {
        if let Some(pace) = &mut self.pace {
            pace.filled(tail, lines as u64);
        }
    }
}

impl Producer {
    /// The same producer, of a lane in memory that both ends have in their caches. Over a real link more has to be under way
    /// than a short lap holds.
    pub fn near(mut self) -> Self {
        self.laps = Some(Box::new(Laps { gait: ALL[0], pace: Some(Pace::new()) }));
        self
    }

    /// The same producer, whose pieces turn back after so many lines if they can.
    #[cfg(test)]
    pub(super) fn with_laps(mut self, lines: usize) -> Self {
        let gait = Gait { lap: Some(lines), ..SHORT };
        self.laps = Some(Box::new(Laps { gait, pace: None }));
        self
    }

    /// The most bytes of a payload that a piece should have.
    pub fn piece_max(&self) -> usize {
        self.laps.as_ref().map_or(usize::MAX, |laps| laps.gait.piece)
    }

    /// Whether the consumer has told of so little that it is likely to have something to take. A consumer that keeps up may be thought to
    /// be behind, until it tells of the half of the lane that it has just taken.
    #[inline]
    pub fn is_behind(&mut self) -> bool {
        let half = self.lines / 2;
        self.piece_max() == usize::MAX && self.taken() > half && !self.frees(half)
    }

    /// As [`Producer::reserve`], for a piece of something large.
    #[inline]
    pub fn reserve_piece(&mut self, len: usize) -> Option<Slot<'_>> {
        let Some((end, asks)) = self.choose_laps() else { return self.reserve(len) };
        let lines = lines_for(len + self.trailer);
        if end.is_some_and(|end| self.at + lines > end) {
            // More than the lane has, where a lap has only begun: the consumer insists on an entry in each.
            let need = self.lines - self.at + lines + 1;
            if self.taken() + need <= self.lines || self.frees(need) {
                return Some(Slot { room: len, at: 0, asks, lane: self });
            }
        }
        let mut slot = self.reserve(len)?;
        slot.asks = asks;
        Some(slot)
    }

    /// Where the lap ends for a piece, and whether the piece asks for the head.
    fn choose_laps(&mut self) -> Option<(Option<usize>, bool)> {
        let is_due = |pace: &Pace| pace.is_due(self.tail);
        if self.laps.as_ref()?.pace.as_ref().is_some_and(is_due) {
            self.look();
        }
        let (head, tail) = (self.head, self.tail);
        let laps = self.laps.as_mut()?;
        let Some(pace) = &mut laps.pace else { return Some((laps.gait.lap, true)) };
        if pace.is_due(tail) {
            laps.gait = ALL[pace.choose(head, tail, Instant::now())];
        }
        Some((laps.gait.lap, laps.gait.lap.is_some() || pace.is_trying()))
    }
}
