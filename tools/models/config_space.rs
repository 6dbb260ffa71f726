//! The configuration space of a modelled function.

/// Size of a configuration space, bytes.
pub const SIZE: usize = 4096;

/// The memory range of a 64-bit prefetchable base address register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarMask {
    /// Number of the register: 0, 2 or 4.
    pub index: u8,
    /// Size of the range, bytes; a power of two.
    pub size: u64,
}

/// The capabilities of a function and their places in the configuration space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// MSI-X.
    pub msix: usize,
    /// Number of interrupt vectors.
    pub vectors: usize,
    /// Offset of the MSI-X table in BAR 0, bytes. The pending bits lie 4096 bytes behind it.
    pub table: u64,
    /// PCI Express.
    pub express: usize,
    /// Power management.
    pub power: usize,
}

/// Bytes of configuration space, with those bits that the host can write.
pub struct ConfigSpace {
    bytes: Vec<u8>,
    writable: Vec<u8>,
    bars: Vec<BarMask>,
}

impl ConfigSpace {
    /// Offset of the command register.
    pub const COMMAND: usize = 4;
    const BUS_MASTER: u64 = 1 << 2;

    /// Creates the space of a function of the class "other bridge" with these ids and base address registers.
    pub fn new(vendor: u16, device: u16, revision: u8, bars: &[BarMask]) -> ConfigSpace {
        let mut space = ConfigSpace { bytes: vec![0; SIZE], writable: vec![0; SIZE], bars: bars.to_vec() };
        space.set(0x00, u64::from(device) << 16 | u64::from(vendor), 4);
        space.set(0x08, 0x0680_0000 | u64::from(revision), 4);
        space.set(0x2c, u64::from(vendor), 4);
        space.allow(Self::COMMAND, 0x0546, 2);
        space.allow(0x0c, 0xff, 1);
        space.allow(0x3c, 0xff, 1);
        for bar in bars {
            let at = 0x10 + 4 * usize::from(bar.index);
            space.set(at, 0xc, 4);
            space.allow(at, !(bar.size - 1), 8);
        }
        space
    }

    /// Adds capabilities.
    pub fn add(&mut self, capabilities: &Capabilities) {
        let &Capabilities { msix, vectors, table, express, power } = capabilities;
        self.set(0x06, 0x0010, 2); // there is a list of capabilities
        self.set(0x34, msix as u64, 1);
        self.set(msix, 0x11 | (express as u64) << 8 | (vectors as u64 - 1) << 16, 4);
        self.set(msix + 4, table, 4);
        self.set(msix + 8, table + 4096, 4);
        self.allow(msix + 2, 0xc000, 2);
        self.set(express, 0x10 | (power as u64) << 8 | 0x0092 << 16, 4); // version 2, integrated endpoint
        self.set(express + 4, 0x8001, 4);
        self.allow(express + 8, 0xffff, 2);
        self.set(power, 0x01 | 0x0003 << 16, 4);
        self.set(power + 4, 0x0008, 2);
        self.allow(power + 4, 0x0103, 2);
    }

    /// Returns `len` bytes at `offset` as a number.
    pub fn get(&self, offset: usize, len: usize) -> u64 {
        number(&self.bytes[offset..offset + len])
    }

    /// Sets `len` bytes at `offset`, as the device does.
    pub fn set(&mut self, offset: usize, value: u64, len: usize) {
        self.bytes[offset..offset + len].copy_from_slice(&value.to_le_bytes()[..len]);
    }

    /// Lets the host write the bits of `mask` in the `len` bytes at `offset`.
    pub fn allow(&mut self, offset: usize, mask: u64, len: usize) {
        self.writable[offset..offset + len].copy_from_slice(&mask.to_le_bytes()[..len]);
    }

    /// Executes a read of the host.
    pub fn read(&self, offset: usize, data: &mut [u8]) {
        match self.bytes.get(offset..offset + data.len()) {
            Some(bytes) => data.copy_from_slice(bytes),
            None => data.fill(0xff),
        }
    }

    /// Executes a write of the host.
    pub fn write(&mut self, offset: usize, data: &[u8]) {
        for (at, byte) in (offset..SIZE).zip(data) {
            let mask = self.writable[at];
            self.bytes[at] = self.bytes[at] & !mask | byte & mask;
        }
    }

    /// Returns the address that the host has given to a memory range.
    pub fn bar(&self, index: u8) -> u64 {
        self.get(0x10 + 4 * usize::from(index), 8) & !0xf
    }

    /// Returns the memory ranges.
    pub fn bars(&self) -> &[BarMask] {
        &self.bars
    }

    /// Returns true if the function may write memory of its host.
    pub fn is_bus_master(&self) -> bool {
        self.get(Self::COMMAND, 2) & Self::BUS_MASTER != 0
    }

    /// Resets what the host has written, except the addresses of the memory ranges.
    pub fn reset(&mut self) {
        self.set(Self::COMMAND, 0, 2);
    }
}

/// Returns little-endian bytes, at most 8, as a number.
pub fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}
