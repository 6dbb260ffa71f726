//! The parts of a driver that gen3 to gen5 share.
//!
//! Each host has a function of its own, back to back with the neighbour's. Its incoming address ranges have a
//! translation (`XBASE`) and a limit in terms of the address of the range's own base address register (`XLMT`).

use crate::chip::{Aperture, Chip, Events, Limits, LinkStatus};
use crate::driver::Driven;
use crate::error::PciError;
use crate::function::{Bar, Function};
use crate::registers::Width;
use std::sync::Arc;

/// Registers behind BAR 0. Control (32 bits).
pub(super) const CONTROL: u64 = 0x0;
/// Snooping of the processors' caches, for the accesses in either direction through both windows.
pub(super) const CONTROL_SNOOP: u32 = 0x154;
/// Pending and disabled interrupts (64 bits): the doorbells in the bits 0 to 31, the link in bit 32.
const INT_STATUS: u64 = 0x40;
const INT_DISABLE: u64 = 0x48;
/// The scratchpads that the neighbour writes (32 bits each).
const SCRATCHPAD: u64 = 0x80;
/// Doorbells of the neighbour: a register each, which takes a 1 (32 bits).
const PEER_DOORBELL: u64 = 0x100;

const SCRATCHPADS: usize = 16;
const VECTORS: usize = 33;
const LINK_BIT: u32 = 32;
const ALL_BITS: u64 = (1 << 33) - 1;

/// Registers of an incoming address range (64 bits each).
struct Incoming {
    /// Base address register of the range.
    bar: u8,
    /// Translation.
    base: u64,
    /// Limit in terms of the address of the base address register.
    limit: u64,
}

const INCOMING: [Incoming; 2] =
    [Incoming { bar: 2, base: 0x10, limit: 0x18 }, Incoming { bar: 4, base: 0x20, limit: 0x28 }];

pub(super) const SIZES_DIFFER: &str =
    "The size of the window in the BIOS may differ from the size that the neighbour's BIOS has set";

/// The differences between the generations. A window is a number: 0 is BAR 2, 1 is BAR 4.
pub(super) trait Generation: Send + Sync {
    /// Number of doorbells that can be used.
    const DOORBELLS: usize;
    /// Vector of each interrupt bit (8 bits each).
    const INT_VECTOR: u64;
    /// Vector that the link's interrupt gets.
    const LINK_VECTOR: u8;
    /// The neighbour's scratchpads (32 bits each).
    const PEER_SCRATCHPAD: u64;
    /// Names of the translations and of the limits.
    const NAMES: [[&'static str; 2]; 2];

    /// Returns the alignment of the bus address of incoming memory behind a window of `size` bytes, bytes.
    fn iova_align(&self, size: u64) -> u64;
    /// Sets what else limits a window to `size` bytes.
    fn open(&self, device: &Driven, window: usize, size: u64) -> Result<(), PciError>;
    /// Withdraws what else admits writes through a window.
    fn close(&self, device: &Driven, window: usize);
    /// Initializes what other generations do not have.
    fn initialize(&self, device: &Driven);
    /// Does [`Chip::enable_link`].
    fn enable_link(&self, device: &Driven) -> Result<(), PciError>;
    /// Does [`Chip::disable_link`].
    fn disable_link(&self, device: &Driven);
    /// Does [`Chip::link`].
    fn link(&self, device: &Driven) -> Result<LinkStatus, PciError>;
    /// Does what has to be done before the link's interrupt can be cleared.
    fn before_link_is_cleared(&self, device: &Driven);
}

/// The driver of one function.
pub(super) struct Xeon<G> {
    device: Driven,
    generation: G,
    /// The memory range that carries the window: the largest.
    window: Bar,
}

impl<G: Generation> Xeon<G> {
    /// Returns the driver of a function in a mode that can be used. Fails if it has no window.
    pub fn new(device: Driven, generation: G) -> Result<Xeon<G>, PciError> {
        let window = device.largest(&[2, 4], "Enable BAR 23 and its size in the BIOS of both hosts")?;
        Ok(Xeon { device, generation, window })
    }

    fn number(&self) -> usize {
        usize::from(self.window.index == 4)
    }

    /// Stops everything that comes in through one range.
    fn close(&self, number: usize) {
        let Incoming { bar, base, limit } = INCOMING[number];
        let registers = self.device.registers();
        self.generation.close(&self.device, number);
        registers.write64(limit, self.device.function.bar(bar).map_or(0, |bar| bar.address));
        registers.write64(base, 0);
    }

    /// Bits of the interrupts that have the vector of the link.
    fn link_bits() -> u64 {
        1 << LINK_BIT | 1 << G::LINK_VECTOR
    }
}

impl<G: Generation> Chip for Xeon<G> {
    fn name(&self) -> &'static str {
        self.device.name
    }

    fn function(&self) -> &dyn Function {
        &*self.device.function
    }

    fn limits(&self) -> Limits {
        let size = self.window.size;
        Limits {
            doorbells: G::DOORBELLS,
            scratchpads: SCRATCHPADS,
            vectors: VECTORS,
            least_vectors: VECTORS,
            aperture: Aperture { bar: self.window.index, offset: 0, size },
            incoming: size,
            memory: None,
            iova_align: self.generation.iova_align(size),
            iova_below: None,
            is_whole: false,
        }
    }

    fn initialize(&self) -> Result<(), PciError> {
        self.device.check()?;
        let registers = self.device.registers();
        (0..INCOMING.len()).for_each(|number| self.close(number));
        self.generation.initialize(&self.device);
        registers.write64(INT_DISABLE, ALL_BITS);
        for bit in 0..=LINK_BIT {
            registers.write8(G::INT_VECTOR + u64::from(bit), if bit == LINK_BIT { G::LINK_VECTOR } else { bit as u8 });
        }
        for register in 0..SCRATCHPADS as u64 {
            registers.write32(SCRATCHPAD + 4 * register, 0);
        }
        Ok(())
    }

    fn set_translation(&self, iova: u64, size: u64) -> Result<(), PciError> {
        let is_aligned = iova.is_multiple_of(self.limits().iova_align);
        assert!(is_aligned && size <= self.window.size, "a translation of {size} bytes to {iova:#x}");
        let number = self.number();
        let ([base, limit], Incoming { base: base_at, limit: limit_at, .. }) = (G::NAMES[number], &INCOMING[number]);
        let set = || {
            let write = |name, at, value| self.device.write_checked(name, (at, Width::Qword), value, SIZES_DIFFER);
            write(base, *base_at, iova)?;
            write(limit, *limit_at, self.window.address + size)?;
            self.generation.open(&self.device, number, size)
        };
        set().inspect_err(|_| self.close(number))
    }

    fn clear_translation(&self) {
        self.close(self.number());
    }

    fn enable_link(&self) -> Result<(), PciError> {
        self.device.check()?;
        self.generation.enable_link(&self.device)
    }

    fn disable_link(&self) {
        self.generation.disable_link(&self.device);
    }

    fn link(&self) -> Result<LinkStatus, PciError> {
        self.generation.link(&self.device)
    }

    fn enable_interrupts(&self, doorbells: u32) {
        let usable = (1 << G::DOORBELLS) - 1;
        let enabled = u64::from(doorbells) & usable | Self::link_bits() & !usable;
        self.device.registers().write64(INT_DISABLE, ALL_BITS & !enabled);
    }

    fn take_events(&self) -> Result<Events, PciError> {
        let status = self.device.registers().read64(INT_STATUS);
        if status == u64::MAX {
            return Err(self.device.gone());
        }
        let link_changed = status & 1 << LINK_BIT != 0;
        if link_changed {
            self.generation.before_link_is_cleared(&self.device);
        }
        if status & ALL_BITS != 0 {
            self.device.registers().write64(INT_STATUS, status & ALL_BITS);
        }
        Ok(Events { doorbells: (status & ((1 << G::DOORBELLS) - 1)) as u32, link_changed })
    }

    fn scratchpad(&self, register: usize) -> Result<u32, PciError> {
        assert!(register < SCRATCHPADS, "no scratchpad {register}");
        self.device.read_any32(SCRATCHPAD + 4 * register as u64)
    }

    fn set_peer_scratchpad(&self, register: usize, value: u32) {
        assert!(register < SCRATCHPADS, "no scratchpad {register}");
        self.device.registers().write32(G::PEER_SCRATCHPAD + 4 * register as u64, value);
    }

    fn ring(&self, doorbell: usize) {
        assert!(doorbell < G::DOORBELLS, "no doorbell {doorbell}");
        self.device.registers().write32(PEER_DOORBELL + 4 * doorbell as u64, 1);
    }

    fn causes_of_silence(&self) -> &'static str {
        "the windows of both hosts have different sizes in the BIOS; bus mastering is off; the IOMMU of the receiving host \
         refuses the writes (its kernel log says so); another driver is bound to one of the functions"
    }
}

/// Returns the driver as the interface that the adapter uses.
pub(super) fn chip<G: Generation + 'static>(device: Driven, generation: G) -> Result<Arc<dyn Chip>, PciError> {
    Ok(Arc::new(Xeon::new(device, generation)?))
}
