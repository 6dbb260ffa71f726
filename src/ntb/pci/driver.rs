//! Parts that the drivers of all chips share.

use crate::error::PciError;
use crate::function::{Bar, Function};
use crate::registers::{Block, Space, Width};
use std::sync::Arc;

/// A function under a driver.
pub(crate) struct Driven {
    /// Name of the chip.
    pub name: &'static str,
    pub function: Arc<dyn Function>,
    /// Offset of a register of 32 bits behind BAR 0 that never holds all ones.
    pub proof: u64,
}

impl Driven {
    /// Returns the registers behind BAR 0.
    pub fn registers(&self) -> Block<'_, dyn Function> {
        Block::new(&*self.function, Space::Bar(0))
    }

    /// Returns the configuration space.
    pub fn config(&self) -> Block<'_, dyn Function> {
        Block::new(&*self.function, Space::Config)
    }

    /// Returns the error of a function that does not answer.
    pub fn gone(&self) -> PciError {
        PciError::Gone { identity: self.function.identity() }
    }

    /// Returns the error of a function in a mode that cannot be used.
    pub fn unusable(&self, problem: impl Into<String>, help: &'static str) -> PciError {
        let identity = self.function.identity();
        PciError::Unusable { chip: self.name, identity, problem: problem.into(), help }
    }

    /// Returns an error unless the function answers. The ids in the configuration space prove nothing: VFIO answers reads
    /// of them itself.
    pub fn check(&self) -> Result<(), PciError> {
        match self.registers().read32(self.proof) {
            u32::MAX => Err(self.gone()),
            _ => Ok(()),
        }
    }

    /// Returns the largest of the memory ranges with these numbers, the first of several: it carries the window. Fails if
    /// there is none.
    pub fn largest(&self, bars: &[u8], help: &'static str) -> Result<Bar, PciError> {
        // `max_by_key` returns the last of several.
        let ranges = bars.iter().rev().filter_map(|&bar| self.function.bar(bar));
        let window = ranges.max_by_key(|bar| bar.size).filter(|_| self.function.bar(0).is_some());
        window.ok_or_else(|| self.unusable("it has no memory range for a window", help))
    }

    /// Writes a register of BAR 0 and reads it back.
    pub fn write_checked(
        &self,
        register: &'static str,
        (offset, width): (u64, Width),
        value: u64,
        help: &'static str,
    ) -> Result<(), PciError> {
        self.function.write(Space::Bar(0), offset, width, value);
        match self.function.read(Space::Bar(0), offset, width) {
            found if found == value => Ok(()),
            found => {
                let identity = self.function.identity();
                Err(PciError::ReadBack { chip: self.name, identity, register, written: value, found, help })
            }
        }
    }

    /// Reads a register of BAR 0 that may hold all ones.
    pub fn read_any32(&self, offset: u64) -> Result<u32, PciError> {
        let value = self.registers().read32(offset);
        if value == u32::MAX {
            self.check()?;
        }
        Ok(value)
    }

    /// Returns the offset of a capability in the configuration space; None if the function does not have it.
    pub fn capability(&self, id: u8) -> Option<u64> {
        let mut at = u64::from(self.config().read8(0x34) & !3);
        // A list that leads in a circle ends nevertheless.
        for _ in 0..48 {
            match self.config().read8(at) {
                _ if at < 0x40 => return None,
                found if found == id => return Some(at),
                _ => at = u64::from(self.config().read8(at + 1) & !3),
            }
        }
        None
    }
}
