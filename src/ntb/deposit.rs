//! A line written at once: what a small message is.

use super::bytes::{copy, ForeignBytes};
use super::window::OutWindow;
use std::sync::atomic::Ordering;

/// Bytes of a line.
const LINE: usize = 64;
/// Bytes of its first word, which says that the rest is there.
const WORD: usize = 8;

impl OutWindow {
    /// Writes to the line at `offset` the bytes of `first`, those of `then`, and before them `word`, which comes last.
    /// False, and nothing is written, if that is not one plain store after the other: something stands between, or
    /// it does not fit. Then [`OutWindow::write`] and [`OutWindow::store`] do it.
    #[inline(always)]
    pub fn put_line(&self, offset: usize, word: u64, first: &[u8], then: ForeignBytes) -> bool {
        let len = first.len().saturating_add(then.len);
        if self.is_decorated() || len > LINE - WORD || offset % LINE != 0 || !self.region.has(offset, LINE) {
            return false;
        }
        let to = self.region.address(offset + WORD);
        // SAFETY: both are readable, as a slice and by ForeignBytes' contract; the line lies in the mapping (checked), and
        // has room for both behind the word.
        unsafe {
            copy(first.as_ptr(), to, first.len());
            copy(then.at, to.add(first.len()), then.len);
        }
        self.region.word(offset).store(word, Ordering::Release);
        true
    }
}
