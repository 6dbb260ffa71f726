//! The layout of an emulated host's memory.

use ntbring_ntb::software::PAGE;
use ntbring_ntb::Side;

/// Layout of a host's memory file: register page, left window, right window, local part; and, for
/// a link model, the accounts of both windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLayout {
    /// Bytes of each incoming window, a multiple of the page size.
    pub window: u64,
    /// Bytes that only this host's own processes map, a multiple of the page size.
    pub local: u64,
    /// Whether a link model keeps accounts of the windows: as much memory again.
    pub accounts: bool,
}

impl MemoryLayout {
    /// Where the incoming window of a side starts, bytes.
    pub fn window_offset(&self, side: Side) -> u64 {
        PAGE as u64 + side as u64 * self.window
    }

    /// Where the local part starts, bytes.
    pub fn local_offset(&self) -> u64 {
        PAGE as u64 + 2 * self.window
    }

    /// Bytes in total.
    pub fn total(&self) -> u64 {
        self.local_offset() + self.local + self.accounts_total()
    }

    /// Bytes of the accounts of both windows, at the end.
    pub fn accounts_total(&self) -> u64 {
        if self.accounts {
            2 * self.window
        } else {
            0
        }
    }

    /// Where in a memory of `size` bytes the accounts for `offset` are, which lies in a window.
    pub fn accounts_offset(&self, size: u64, offset: u64) -> Option<u64> {
        (size.checked_sub(self.accounts_total())?).checked_add(offset.checked_sub(PAGE as u64)?)
    }
}
