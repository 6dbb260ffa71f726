//! The layout of an emulated host's window file.

use ntbring_ntb::fabric::Windows;
use ntbring_ntb::software::PAGE;
use ntbring_ntb::Side;

/// Layout of a host's window file: register page, left window, right window, and, for a link model, the accounts of
/// both windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLayout {
    /// Size of each incoming window, bytes; a multiple of the page size.
    pub window: u64,
    /// True if there are accounts of the windows, for a link model; they take as much memory as the windows.
    pub accounts: bool,
}

impl MemoryLayout {
    /// Returns the offset of the incoming window on `side`, bytes.
    pub fn window_offset(&self, side: Side) -> u64 {
        PAGE as u64 + side as u64 * self.window
    }

    /// Returns the layout for these windows.
    pub fn of(windows: Windows) -> MemoryLayout {
        MemoryLayout { window: windows.bytes, accounts: windows.accounts }
    }

    /// Returns the size of the file, bytes.
    pub fn total(&self) -> u64 {
        PAGE as u64 + 2 * self.window + self.accounts_total()
    }

    /// Returns the size of the accounts of both windows, bytes; they are at the end of the file.
    pub fn accounts_total(&self) -> u64 {
        if self.accounts {
            2 * self.window
        } else {
            0
        }
    }

    /// Returns the offset of the accounts that belong to `offset` in a window, for a file of `size` bytes; None if
    /// `offset` lies before the windows or the file is too short.
    pub fn accounts_offset(&self, size: u64, offset: u64) -> Option<u64> {
        (size.checked_sub(self.accounts_total())?).checked_add(offset.checked_sub(PAGE as u64)?)
    }
}
