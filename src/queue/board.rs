//! Boards: allgather mailboxes, arrays of slots in a window that one rank writes and another reads, in rounds. They
//! carry the data that the ranks of a group pass around the ring.
//!
//! A board has two sets of slots, used in alternate rounds. In a round each slot of its set is written once. It may
//! be read as soon as it carries the number of the round:
//!
//! ```text
//! slot   | tag | bytes ......................... |      2 to 32 lines
//! tag    round (32 bits) | length (16) | 1: the rank has failed and gives no bytes (1) | its core + 1, or 0 (15)
//! ```
//!
//! **There is no flow control.** The user of a board ensures that no rank writes in one round before all ranks have
//! read everything of the round before the previous one. In a ring in which every rank needs data of every other rank
//! in each round, this always holds.

use super::{Corrupt, LINE, TAG};
#[cfg(not(loom))]
use ntbring_memory::ForeignBytes;
use ntbring_memory::{InWindow, OutWindow};

/// Smallest and largest size of a slot in bytes.
pub const PLACE: (usize, usize) = (2 * LINE, 32 * LINE);

/// Largest number of bytes that can be posted in a slot of `place_bytes` bytes.
pub const fn post_max(place_bytes: usize) -> usize {
    place_bytes - TAG
}

/// Layout of a board, the same at both of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardLayout {
    /// Number of slots per round.
    pub places: usize,
    /// Size of a slot in bytes, a multiple of a line.
    pub place_bytes: usize,
}

impl BoardLayout {
    /// Size of the board in bytes.
    pub const fn bytes(&self) -> usize {
        2 * self.places * self.place_bytes
    }

    fn offset(&self, turn: u32, place: usize) -> usize {
        assert!(place < self.places, "place {place} on a board of {}", self.places);
        (turn as usize % 2 * self.places + place) * self.place_bytes
    }
}

/// The writing end of a board.
pub struct BoardWriter {
    window: OutWindow,
    layout: BoardLayout,
    turn: u32,
}

/// The reading end of a board.
pub struct BoardReader {
    window: InWindow,
    layout: BoardLayout,
    turn: u32,
}

/// Header of a posted slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Posted {
    /// Number of bytes.
    pub len: usize,
    /// True if the rank that owns the data has failed, so that all readers go without its bytes.
    pub failed: bool,
    /// The core on which that rank ran.
    pub core: CoreId,
}

/// A core of the machine that all ranks of the group share; `default()` if it is unknown or there is no such machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreId(u16);

impl CoreId {
    /// Returns the core with a number of the operating system; unknown if a tag has no room for the number.
    pub fn new(number: usize) -> CoreId {
        CoreId(u16::try_from(number).ok().filter(|&n| n < (1 << 15) - 1).map_or(0, |n| n + 1))
    }

    /// True if both cores are known and different.
    pub fn differs(self, other: CoreId) -> bool {
        self != other && self != CoreId::default() && other != CoreId::default()
    }
}

impl BoardWriter {
    /// Returns the writer of the board that `window` covers, which must be zero at the start.
    pub fn new(window: OutWindow, layout: BoardLayout) -> BoardWriter {
        BoardWriter { window, layout, turn: 0 }
    }

    /// Begins the next round.
    pub fn turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
    }

    /// Posts bytes in a slot. Panics if they are more than [`post_max`].
    #[inline]
    pub fn post(&self, place: usize, bytes: &[u8], failed: bool, core: CoreId) {
        let at = self.check(place, bytes.len());
        self.window.write_bytes(at + TAG, bytes);
        self.publish(at, Posted { len: bytes.len(), failed, core });
    }

    /// Forwards bytes that were found in a slot of another board.
    #[cfg(not(loom))]
    #[inline]
    pub fn repost(&self, place: usize, bytes: ForeignBytes, posted: Posted) {
        let at = self.check(place, bytes.len());
        self.window.write(at + TAG, bytes);
        self.publish(at, Posted { len: bytes.len(), ..posted });
    }

    fn check(&self, place: usize, len: usize) -> usize {
        let most = post_max(self.layout.place_bytes);
        assert!(len <= most, "{len} bytes at a place for {most}");
        self.layout.offset(self.turn, place)
    }

    #[inline]
    fn publish(&self, at: usize, Posted { len, failed, core }: Posted) {
        self.window.fence();
        let what = (len as u64) << 32 | u64::from(failed) << 48 | u64::from(core.0) << 49;
        self.window.store(at, u64::from(self.turn) | what);
        self.window.fence();
    }
}

impl BoardReader {
    /// Returns the reader of the board that `window` covers, which must be zero at the start.
    pub fn new(window: InWindow, layout: BoardLayout) -> BoardReader {
        BoardReader { window, layout, turn: 0 }
    }

    /// Begins the next round.
    pub fn turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
    }

    /// Takes over the round of another board that is used in the same way from here on.
    pub fn follow(&mut self, other: &BoardReader) {
        self.turn = other.turn;
    }

    /// Returns the header of a slot if it was posted in this round; None if it was not posted yet.
    #[inline]
    pub fn look(&self, place: usize) -> Result<Option<Posted>, Corrupt> {
        let word = self.window.load(self.layout.offset(self.turn, place));
        let (turn, len) = (word as u32, (word >> 32) as u16 as usize);
        if turn == self.turn && len <= post_max(self.layout.place_bytes) {
            return Ok(Some(Posted { len, failed: word >> 48 & 1 == 1, core: CoreId((word >> 49) as u16) }));
        }
        match turn == self.turn.wrapping_sub(2) || word == 0 {
            true => Ok(None),
            false => Err(Corrupt::Place { place, word, turn: self.turn }),
        }
    }

    /// Bytes of a posted slot, to be forwarded without a copy in between.
    #[cfg(not(loom))]
    pub fn foreign(&self, place: usize, len: usize) -> ForeignBytes<'_> {
        self.window.foreign(self.layout.offset(self.turn, place) + TAG, len)
    }

    /// Copies the bytes of a posted slot to `to`.
    pub fn read(&self, place: usize, to: &mut [u8]) {
        self.window.read(self.layout.offset(self.turn, place) + TAG, to);
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
