//! Hosts that are threads of one process: for tests and examples. Nothing is opened, mapped or left behind.

use crate::software::{Registers, SoftPort, SoftVector, WindowMemory, PAGE};
use crate::{LinkState, NtbError, Side, Vector};
use ntbring_memory::Region;
use std::sync::Arc;

/// Memory of the windows of one host, and of their accounts.
struct Windows {
    window: u64,
    bytes: Region,
    accounts: Region,
}

impl Windows {
    fn part(&self, of: &Region, offset: u64, len: u64) -> Result<Region, NtbError> {
        let size = 2 * self.window;
        if offset > size || len > size - offset {
            return Err(NtbError::Aperture { offset, len, size });
        }
        Ok(of.part(offset as usize, len as usize))
    }
}

impl WindowMemory for Windows {
    fn window(&self) -> u64 {
        self.window
    }

    fn window_offset(&self, side: Side) -> u64 {
        side as u64 * self.window
    }

    fn map(&self, offset: u64, len: u64) -> Result<Region, NtbError> {
        self.part(&self.bytes, offset, len)
    }

    fn accounts(&self, offset: u64, len: u64) -> Result<Region, NtbError> {
        self.part(&self.accounts, offset, len)
    }
}

/// A host of a ring within one process.
#[derive(Clone)]
pub struct LoopbackHost {
    windows: Arc<Windows>,
    registers: Registers,
}

impl LoopbackHost {
    /// A host with two incoming windows of `window` bytes, a multiple of 64.
    pub fn new(window: usize) -> LoopbackHost {
        assert_eq!(window % 64, 0, "a window is a multiple of 64 bytes");
        let memory = || Region::anonymous(2 * window);
        let windows = Windows { window: window as u64, bytes: memory(), accounts: memory() };
        let registers = Registers::new(Region::anonymous(PAGE));
        registers.attend();
        LoopbackHost { windows: Arc::new(windows), registers }
    }

    /// Its port on `side`, cabled to the opposite port of `neighbour`.
    pub fn port(&self, side: Side, neighbour: &LoopbackHost) -> Result<SoftPort, NtbError> {
        let end = |host: &LoopbackHost| (host.windows.clone() as Arc<dyn WindowMemory>, host.registers.clone());
        SoftPort::new(side, end(self), end(neighbour))
    }

    /// One of its vectors, raised by either port or by [`LoopbackHost::ring`].
    pub fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        Arc::new(SoftVector::new(self.registers.clone(), doorbell))
    }

    /// Raises one of its vectors from inside the host.
    pub fn ring(&self, doorbell: usize) {
        self.registers.interrupt(doorbell);
    }

    /// Makes its port on a side report this state of the link from now on.
    pub fn set_link(&self, side: Side, state: LinkState) {
        self.registers.set_link(side, state);
    }
}
