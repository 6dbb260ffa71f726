//! Access to the registers of a PCI function: the seam between the drivers of chips and either VFIO or a model.

/// A space of a function's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// The configuration space, 4096 bytes.
    Config,
    /// The memory behind a base address register, 0 to 5. A 64-bit register has the number of its lower half.
    Bar(u8),
}

/// Width of one access. A chip may ignore or misunderstand accesses of a width that a register does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 8 bits.
    Byte = 1,
    /// 16 bits.
    Word = 2,
    /// 32 bits.
    Dword = 4,
    /// 64 bits.
    Qword = 8,
}

impl Width {
    /// Returns the number of bytes.
    pub fn bytes(self) -> usize {
        self as usize
    }

    /// Returns the value with all bits set, which a bus returns if no device answers.
    pub fn ones(self) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes())
    }
}

/// The registers of one PCI function. Registers are little endian; every access is made in the given width, and each
/// access is complete or posted before the next of the same thread.
///
/// A read that fails returns all ones, as the bus does if the device is gone; a write that fails is dropped.
pub trait Registers: Send + Sync {
    /// Reads a register at an aligned offset, in bytes from the start of the space.
    fn read(&self, space: Space, offset: u64, width: Width) -> u64;
    /// Writes a register at an aligned offset, in bytes from the start of the space.
    fn write(&self, space: Space, offset: u64, width: Width, value: u64);
}

/// Registers of one space, for drivers: accesses by their width.
#[derive(Clone, Copy)]
pub struct Block<'a, R: Registers + ?Sized> {
    registers: &'a R,
    space: Space,
}

impl<'a, R: Registers + ?Sized> Block<'a, R> {
    /// Returns the registers of `space`.
    pub fn new(registers: &'a R, space: Space) -> Self {
        Block { registers, space }
    }

    /// Reads 8 bits.
    pub fn read8(&self, offset: u64) -> u8 {
        self.registers.read(self.space, offset, Width::Byte) as u8
    }

    /// Reads 16 bits.
    pub fn read16(&self, offset: u64) -> u16 {
        self.registers.read(self.space, offset, Width::Word) as u16
    }

    /// Reads 32 bits.
    pub fn read32(&self, offset: u64) -> u32 {
        self.registers.read(self.space, offset, Width::Dword) as u32
    }

    /// Reads 64 bits.
    pub fn read64(&self, offset: u64) -> u64 {
        self.registers.read(self.space, offset, Width::Qword)
    }

    /// Writes 8 bits.
    pub fn write8(&self, offset: u64, value: u8) {
        self.registers.write(self.space, offset, Width::Byte, value.into());
    }

    /// Writes 16 bits.
    pub fn write16(&self, offset: u64, value: u16) {
        self.registers.write(self.space, offset, Width::Word, value.into());
    }

    /// Writes 32 bits.
    pub fn write32(&self, offset: u64, value: u32) {
        self.registers.write(self.space, offset, Width::Dword, value.into());
    }

    /// Writes 64 bits.
    pub fn write64(&self, offset: u64, value: u64) {
        self.registers.write(self.space, offset, Width::Qword, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_have_the_width() {
        let widths = [Width::Byte, Width::Word, Width::Dword, Width::Qword];
        assert_eq!(widths.map(Width::ones), [0xff, 0xffff, 0xffff_ffff, u64::MAX]);
        assert_eq!(widths.map(Width::bytes), [1, 2, 4, 8]);
    }
}
