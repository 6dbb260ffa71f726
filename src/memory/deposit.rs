//! Bytes and the word that says that they are there, written at once: what a message is that was packed.

use super::bytes::{copy, ForeignBytes};
use super::window::OutWindow;
use std::sync::atomic::Ordering;

/// Bytes that go to and fro between caches together.
const LINE: usize = 64;
/// Bytes of a word.
const WORD: usize = 8;

impl OutWindow {
    /// Clears the word at `clear`, if any, then writes behind the word at `offset` the bytes of `first` and those of `then`,
    /// and last `word` itself. False, and nothing is written, if that is not one plain store after the other: something
    /// stands between, or it does not fit. Then [`OutWindow::write`] and [`OutWindow::store`] do it.
    #[inline(always)]
    pub fn deposit(&self, clear: Option<usize>, offset: usize, word: u64, first: &[u8], then: ForeignBytes) -> bool {
        let len = first.len().saturating_add(then.len).saturating_add(WORD);
        let is_word = |at: usize| at % WORD == 0 && self.region.has(at, WORD);
        if !self.is_plain() || !is_word(offset) || !self.region.has(offset, len) || !clear.is_none_or(is_word) {
            return false;
        }
        if let Some(clear) = clear {
            self.region.word(clear).store(0, Ordering::Relaxed);
        }
        // The neighbour looks at the first line all the time, and takes it away as often as something is written there: so that
        // is written last.
        let near = (LINE - WORD).saturating_sub(first.len()).min(then.len);
        let to = self.region.address(offset + WORD);
        // SAFETY: both are readable, as a slice and by ForeignBytes' contract; the window has room for both behind the word
        // (checked).
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
