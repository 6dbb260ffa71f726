//! The function in one host: the state that functions of all families have.

use crate::cable::Counts;
use crate::config_space::{number, ConfigSpace};
use crate::host_side::HostSide;
use ntbring_pci::Space;

/// The function in one host.
pub struct Side {
    pub config: ConfigSpace,
    /// The registers behind BAR 0.
    registers: Vec<u8>,
    pub host: HostSide,
    /// The interrupts that were pending and enabled when last looked at: an interrupt is an edge of them.
    raised: u64,
    pub is_powered: bool,
    /// Fault: the function has vanished.
    pub is_gone: bool,
    /// Fault: registers that ignore writes.
    pub stuck: Vec<u64>,
    pub counts: Counts,
}

impl Side {
    /// Changes the configuration space or the registers behind BAR 0, as a BIOS or a board does.
    pub fn configure(&mut self, space: Space, offset: u64, value: u64, len: usize) {
        match space {
            Space::Config => self.config.set(offset as usize, value, len),
            _ => self.set(offset, value, len),
        }
    }

    /// Creates a function without power, with `size` bytes of registers, all zero, and `vectors` interrupt vectors.
    pub fn new(config: ConfigSpace, size: u64, vectors: usize) -> Side {
        Side {
            config,
            registers: vec![0; size as usize],
            host: HostSide::new(vectors),
            raised: 0,
            is_powered: false,
            is_gone: false,
            stuck: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Sets all registers to zero and forgets the interrupts.
    pub fn clear(&mut self) {
        self.registers.fill(0);
        self.config.reset();
        self.raised = 0;
    }

    /// Returns the register of `len` bytes at `offset`.
    pub fn get(&self, offset: u64, len: usize) -> u64 {
        number(&self.registers[offset as usize..][..len])
    }

    /// Sets the register of `len` bytes at `offset`.
    pub fn set(&mut self, offset: u64, value: u64, len: usize) {
        self.registers[offset as usize..][..len].copy_from_slice(&value.to_le_bytes()[..len]);
    }

    /// Sets the bits of `set` in a register, and clears those of `cleared`.
    pub fn change(&mut self, offset: u64, set: u64, cleared: u64, len: usize) {
        self.set(offset, (self.get(offset, len) | set) & !cleared, len);
    }

    /// Takes the interrupts that are pending and enabled now, a bit each, and raises the vectors of those that are new.
    pub fn raise(&mut self, now: u64, vector: impl Fn(&Side, u32) -> Option<usize>) {
        let new = now & !self.raised;
        self.raised = now;
        for bit in (0..u64::BITS).filter(|bit| new >> bit & 1 == 1) {
            if vector(self, bit).is_some_and(|vector| self.host.interrupt(vector)) {
                self.counts.interrupts += 1;
            }
        }
    }
}
