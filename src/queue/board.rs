//! Boards: places in a window that one rank writes and another reads, in turns, for what a circle of
//! ranks passes on.
//!
//! A board has two sets of places, used in alternate turns. In a turn each place of its set is written
//! once, and read once it carries the turn's number:
//!
//! ```text
//! place  | tag | bytes ......................... |      4 to 32 lines
//! tag    turn (32 bits) | length (16) | 1: the rank has failed and gives no bytes (16)
//! ```
//!
//! **Nothing is returned.** Whoever uses a board makes sure that nobody writes in one turn before all
//! have read everything of the turn before the last: in a circle where everybody needs something of
//! everybody in each turn, that is so by itself.

use super::{Corrupt, LINE, TAG};
#[cfg(not(loom))]
use ntbring_memory::ForeignBytes;
use ntbring_memory::{InWindow, OutWindow};

/// Bytes of the smallest and of the largest place.
pub const PLACE: (usize, usize) = (4 * LINE, 32 * LINE);

/// The most bytes that can be posted at a place of so many bytes.
pub const fn post_max(place_bytes: usize) -> usize {
    place_bytes - TAG
}

/// How a board is divided: the same at both of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardPlan {
    /// Places of a turn.
    pub places: usize,
    /// Bytes of each, a multiple of a line.
    pub place_bytes: usize,
}

impl BoardPlan {
    /// Bytes in all.
    pub const fn bytes(&self) -> usize {
        2 * self.places * self.place_bytes
    }

    fn offset(&self, turn: u32, place: usize) -> usize {
        assert!(place < self.places, "place {place} on a board of {}", self.places);
        (turn as usize % 2 * self.places + place) * self.place_bytes
    }
}

/// The end of a board that writes.
pub struct BoardWriter {
    window: OutWindow,
    plan: BoardPlan,
    turn: u32,
}

/// The end of a board that reads.
pub struct BoardReader {
    window: InWindow,
    plan: BoardPlan,
    turn: u32,
}

/// What was found at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Posted {
    /// Bytes.
    pub len: usize,
    /// Whether they are missing, for everybody.
    pub failed: bool,
}

impl BoardWriter {
    /// The writer of the board that `window` covers, which must be zero at the start.
    pub fn new(window: OutWindow, plan: BoardPlan) -> BoardWriter {
        BoardWriter { window, plan, turn: 0 }
    }

    /// Begins the next turn.
    pub fn turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
    }

    /// Posts bytes, as many as [`post_max`] allows, at a place.
    #[inline]
    pub fn post(&self, place: usize, bytes: &[u8], failed: bool) {
        let at = self.check(place, bytes.len());
        self.window.write_bytes(at + TAG, bytes);
        self.publish(at, Posted { len: bytes.len(), failed });
    }

    /// Posts at a place what was found at one of another board.
    #[cfg(not(loom))]
    #[inline]
    pub fn repost(&self, place: usize, bytes: ForeignBytes, posted: Posted) {
        let at = self.check(place, bytes.len());
        self.window.write(at + TAG, bytes);
        self.publish(at, Posted { len: bytes.len(), ..posted });
    }

    fn check(&self, place: usize, len: usize) -> usize {
        let most = post_max(self.plan.place_bytes);
        assert!(len <= most, "{len} bytes at a place for {most}");
        self.plan.offset(self.turn, place)
    }

    #[inline]
    fn publish(&self, at: usize, Posted { len, failed }: Posted) {
        self.window.fence();
        let what = (len as u64) << 32 | u64::from(failed) << 48;
        self.window.store(at, u64::from(self.turn) | what);
        self.window.fence();
    }
}

impl BoardReader {
    /// The reader of the board that `window` covers, which must be zero at the start.
    pub fn new(window: InWindow, plan: BoardPlan) -> BoardReader {
        BoardReader { window, plan, turn: 0 }
    }

    /// Begins the next turn.
    pub fn turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
    }

    /// What was posted at a place in this turn, if anything was yet.
    #[inline]
    pub fn look(&self, place: usize) -> Result<Option<Posted>, Corrupt> {
        let word = self.window.load(self.plan.offset(self.turn, place));
        let (turn, len, failed) = (word as u32, (word >> 32) as u16 as usize, word >> 48);
        if turn == self.turn && len <= post_max(self.plan.place_bytes) && failed <= 1 {
            return Ok(Some(Posted { len, failed: failed == 1 }));
        }
        match turn == self.turn.wrapping_sub(2) || word == 0 {
            true => Ok(None),
            false => Err(Corrupt::Place { place, word, turn: self.turn }),
        }
    }

    /// The bytes that were posted at a place, to be copied on from where they lie.
    #[cfg(not(loom))]
    pub fn foreign(&self, place: usize, len: usize) -> ForeignBytes {
        self.window.foreign(self.plan.offset(self.turn, place) + TAG, len)
    }

    /// Copies out what was posted at a place.
    pub fn read(&self, place: usize, to: &mut [u8]) {
        self.window.read(self.plan.offset(self.turn, place) + TAG, to);
    }
}

#[cfg(test)]
impl BoardWriter {
    pub(super) fn skip_to(&mut self, turn: u32) {
        self.turn = turn;
    }
}

#[cfg(test)]
impl BoardReader {
    pub(super) fn skip_to(&mut self, turn: u32) {
        self.turn = turn;
    }
}
