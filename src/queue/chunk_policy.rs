//! The chunking policies, and the one that a lane uses.

use super::chunk_tuner::{ChunkTuner, POLICIES};

/// A chunking policy.
#[derive(Clone, Copy)]
pub(super) struct ChunkPolicy {
    /// Number of lines after which a lap ends early if possible; None: at the end of the lane.
    pub lap: Option<usize>,
    /// Largest size of a chunk in bytes.
    pub chunk: usize,
}

/// The policy with short laps. Chunks are large enough for the overhead per chunk not to matter beside the copy, and
/// small enough for several in a lap: a lap holds three chunks and the small entries between one stream and the next.
pub(super) const SHORT: ChunkPolicy = ChunkPolicy { lap: Some(208), chunk: 4096 };

/// The policies from which the auto-tuner selects, in its order.
pub(super) const ALL: [ChunkPolicy; POLICIES] =
    [ChunkPolicy { lap: None, chunk: usize::MAX }, ChunkPolicy { lap: None, chunk: 16 << 10 }, SHORT];

/// State of chunking for one lane.
pub(super) struct Chunking {
    pub policy: ChunkPolicy,
    /// Auto-tuner; None if the policy is fixed.
    pub tuner: Option<ChunkTuner>,
}

impl Chunking {
    /// Records `lines` lines of padding that begin at `tail`.
    pub(super) fn filled(&mut self, tail: u64, lines: usize) {
        if let Some(tuner) = &mut self.tuner {
            tuner.filled(tail, lines as u64);
        }
    }
}
