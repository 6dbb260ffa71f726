//! The layout of an emulated host's window file.

use ntbring_ntb::fabric::Windows;
use ntbring_ntb::software::PAGE;
use ntbring_ntb::{PortIndex, PortList};

/// Layout of a host's window file: register page, an incoming window for each port that the host uses, and, for a link
/// model, the accounts of the windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLayout {
    /// Size of each incoming window, bytes; a multiple of the page size.
    pub window: u64,
    /// True if there are accounts of the windows, for a link model; they take as much memory as the windows.
    pub accounts: bool,
    /// The ports that the host uses, in the order of their windows.
    pub ports: PortList,
}

impl MemoryLayout {
    /// Returns the offset of a port's incoming window, bytes; None if the host does not use the port.
    pub fn window_offset(&self, port: PortIndex) -> Option<u64> {
        Some(PAGE as u64 + self.ports.position(port)? as u64 * self.window)
    }

    /// Returns the layout for these windows.
    pub fn of(windows: Windows) -> MemoryLayout {
        MemoryLayout { window: windows.bytes, accounts: windows.accounts, ports: windows.ports }
    }

    /// Returns the size of the file, bytes.
    pub fn total(&self) -> u64 {
        PAGE as u64 + self.windows_total() + self.accounts_total()
    }

    fn windows_total(&self) -> u64 {
        self.ports.ports().len() as u64 * self.window
    }

    /// Returns the size of the accounts of all windows, bytes; they are at the end of the file.
    pub fn accounts_total(&self) -> u64 {
        if self.accounts {
            self.windows_total()
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
