//! Direct deposit of a packed message into a slot: header, payload and tag word in one call.

use super::bytes::{copy, ForeignBytes};
use super::window::OutWindow;
use std::sync::atomic::Ordering;

/// Size of a cache line, bytes.
const LINE: usize = 64;
/// Size of a word, bytes.
const WORD: usize = 8;

impl OutWindow {
    /// Clears the word at `clear`, if any, writes the bytes of `first` and then those of `then` directly after the word
    /// at `offset`, and last stores `word` itself at `offset`, with release ordering.
    ///
    /// Returns false and writes nothing if this is not a sequence of plain stores: the window has a sink or is not
    /// coherent, a word is misaligned, or a range does not fit into the window. The caller then uses
    /// [`OutWindow::write`] and [`OutWindow::store`].
    #[inline(always)]
    pub fn deposit(&self, clear: Option<usize>, offset: usize, word: u64, first: &[u8], then: ForeignBytes) -> bool {
        let len = first.len().saturating_add(then.len).saturating_add(WORD);
        let is_word = |at: usize| at.is_multiple_of(WORD) && self.region.has(at, WORD);
        if !self.is_plain() || !is_word(offset) || !self.region.has(offset, len) || !clear.is_none_or(is_word) {
            return false;
        }
        if let Some(clear) = clear {
            self.region.word(clear).store(0, Ordering::Relaxed);
        }
        // The receiver polls the slot's first cache line, so each store to that line may find it moved to the
        // receiver's cache: the line is written last.
        let near = (LINE - WORD).saturating_sub(first.len()).min(then.len);
        let to = self.region.address(offset + WORD);
        // SAFETY: `first` is a slice and `then` is readable by ForeignBytes' contract; the window has `len` bytes at
        // `offset` (checked above), that is the word and both sources.
        unsafe {
            if then.len > near {
                copy(then.at.wrapping_add(near), to.add(first.len() + near), then.len - near);
            }
            copy(first.as_ptr(), to, first.len());
            copy(then.at, to.add(first.len()), near);
        }
        self.region.word(offset).store(word, Ordering::Release);
        true
    }
}
