//! Short laps: how something large streams through a lane in memory that both its ends have in their caches.
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
//! What lies beyond a short lap may be older than a lap. The producer counts it as stale, as it does with all lines of a filling.

use super::{lines_for, Producer, Slot};

/// Bytes of a piece: large enough not to count beside its copying, and small enough for several in a lap.
const PIECE: usize = 4096;

/// Lines of a short lap: three pieces, and the small entries between one stream and the next.
const LAP: usize = 208;

impl Producer {
    /// The same producer, of a lane in memory that both ends have in their caches. Over a real link more has to be under way
    /// than a short lap holds.
    pub fn near(self) -> Self {
        self.with_laps(LAP)
    }

    /// The same producer, whose pieces turn back after so many lines if they can.
    pub(super) fn with_laps(mut self, lines: usize) -> Self {
        self.lap = Some(lines);
        self
    }

    /// The most bytes of a payload that a piece should have.
    pub fn piece_max(&self) -> usize {
        self.lap.map_or(usize::MAX, |_| PIECE)
    }

    /// As [`Producer::reserve`], for a piece of something large.
    #[inline]
    pub fn reserve_piece(&mut self, len: usize) -> Option<Slot<'_>> {
        let Some(lap) = self.lap else { return self.reserve(len) };
        let lines = lines_for(len + self.trailer);
        if self.at + lines > lap {
            // More than the lane has, where a lap has only begun: the consumer insists on an entry in each.
            let need = self.lines - self.at + lines + 1;
            if self.taken() + need <= self.lines || self.frees(need) {
                return Some(Slot { room: len, at: 0, asks: true, lane: self });
            }
        }
        let mut slot = self.reserve(len)?;
        slot.asks = true;
        Some(slot)
    }
}
