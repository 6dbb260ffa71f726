//! The layout of an emulated host's memory.

use ntbring_ntb::fabric::Windows;
use ntbring_ntb::software::PAGE;
use ntbring_ntb::Side;

/// Layout of a host's window file: register page, left window, right window; and, for a link model, the accounts of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLayout {
    /// Bytes of each incoming window, a multiple of the page size.
    pub window: u64,
    /// Whether a link model keeps accounts of the windows: as much memory again.
    pub accounts: bool,
}

impl MemoryLayout {
    /// Offset of the incoming window of a side, bytes.
    pub fn window_offset(&self, side: Side) -> u64 {
        PAGE as u64 + side as u64 * self.window
    }

    /// The layout for these windows.
    pub fn of(windows: Windows) -> MemoryLayout {
        MemoryLayout { window: windows.bytes, accounts: windows.accounts }
    }

    /// Bytes in total.
    pub fn total(&self) -> u64 {
        PAGE as u64 + 2 * self.window + self.accounts_total()
    }

    /// Bytes of the accounts of both windows, at the end.
    pub fn accounts_total(&self) -> u64 {
        if self.accounts {
            2 * self.window
        } else {
            0
        }
    }

    /// Offset of the accounts for `offset`, which lies in a window, in a file of `size` bytes.
    pub fn accounts_offset(&self, size: u64, offset: u64) -> Option<u64> {
        (size.checked_sub(self.accounts_total())?).checked_add(offset.checked_sub(PAGE as u64)?)
    }
}
