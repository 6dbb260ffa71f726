//! Chunking policies: the way in which a large payload streams through a lane in memory that both ends have in their
//! caches.
//!
//! The lines of a lane move back and forth between two cores. They move faster if they are still in the core's
//! nearest cache when they are used again; until then the core reads and writes as many other bytes as well. A lap
//! should therefore be less than half of that cache, which mostly has 32 KiB.
//!
//! Chunks of a large payload therefore wrap to the first line of the lane early, *if* the consumer is known to have
//! freed the lines that they overwrite. Otherwise they continue, so that a slow consumer still has the whole lane.
//! For the consumer an early wrap is padding like any other, only longer. To know in time which lines are free,
//! chunks *request* the head: it is returned when they are released, not only after half a lane. No other entries
//! request it, so small messages do not cause more head updates.
//!
//! Chunks also continue to the end of the lane where early wraps are not faster: [`chunk_tuner`](super::chunk_tuner)
//! selects the policy.
//!
//! Words beyond a short lap may be older than one lap. The producer counts them as stale, as it does with all lines
//! of padding.

#[cfg(test)]
use super::chunk_policy::{ChunkPolicy, SHORT};
use super::chunk_policy::{Chunking, ALL};
use super::chunk_tuner::ChunkTuner;
use super::{lines_for, Producer, Slot};
use std::time::Instant;

impl Producer {
    /// Returns this producer with auto-tuned chunking, for a lane in memory that both ends have in their caches. Over
    /// a real link more data has to be in flight than a short lap holds.
    pub fn cached(mut self) -> Self {
        self.chunking = Some(Box::new(Chunking { policy: ALL[0], tuner: Some(ChunkTuner::new()) }));
        self
    }

    /// Returns this producer with a fixed policy: chunks wrap after `lines` lines if they can.
    #[cfg(test)]
    pub(super) fn with_wrap_after(mut self, lines: usize) -> Self {
        let policy = ChunkPolicy { lap: Some(lines), ..SHORT };
        self.chunking = Some(Box::new(Chunking { policy, tuner: None }));
        self
    }

    /// Largest number of payload bytes that a chunk should have.
    pub fn chunk_max(&self) -> usize {
        self.chunking.as_ref().map_or(usize::MAX, |chunking| chunking.policy.chunk)
    }

    /// Returns true if the known head is so old that the consumer is likely to have entries to take. A consumer that
    /// keeps up may be reported as behind until it returns the head for the half lane that it has just taken.
    #[inline]
    pub fn is_behind(&mut self) -> bool {
        let half = self.lines / 2;
        self.chunk_max() == usize::MAX && self.taken() > half && !self.frees(half)
    }

    /// Same as [`Producer::reserve`], for a chunk of a large payload.
    #[inline]
    pub fn reserve_chunk(&mut self, len: usize) -> Option<Slot<'_>> {
        let Some((end, asks)) = self.choose_chunking() else { return self.reserve(len) };
        let lines = lines_for(len + self.trailer());
        if end.is_some_and(|end| self.at + lines > end) {
            // At the start of a lap this is more than the lane has, so the chunk does not wrap: the consumer requires
            // an entry in every lap.
            let need = self.lines - self.at + lines + 1;
            if self.taken() + need <= self.lines || self.frees(need) {
                return Some(Slot { room: len, at: 0, asks, lane: self });
            }
        }
        let mut slot = self.reserve(len)?;
        slot.asks = asks;
        Some(slot)
    }

    /// Returns the line at which the lap ends for a chunk (None: the end of the lane), and whether the chunk requests
    /// the head. Returns None if the lane has no chunking policy.
    fn choose_chunking(&mut self) -> Option<(Option<usize>, bool)> {
        let is_due = |tuner: &ChunkTuner| tuner.is_due(self.tail);
        if self.chunking.as_ref()?.tuner.as_ref().is_some_and(is_due) {
            self.look();
        }
        let (head, tail) = (self.head, self.tail);
        let chunking = self.chunking.as_mut()?;
        let Some(tuner) = &mut chunking.tuner else { return Some((chunking.policy.lap, true)) };
        if tuner.is_due(tail) {
            chunking.policy = ALL[tuner.choose(head, tail, Instant::now())];
        }
        Some((chunking.policy.lap, chunking.policy.lap.is_some() || tuner.is_trying()))
    }
}
