//! Two functions of a family joined by a cable: everything in which the families do not differ.

use crate::cable::{Chip, Counts, End};
use crate::config_space::{number, BarMask, ConfigSpace};
use crate::host_side::HostSide;
use crate::side::Side;
use ntbring_pci::Space;

/// A family of chips: its registers. A window is a number: 0 is BAR 2, 1 is BAR 4.
pub trait Family: Send {
    /// Number of interrupt vectors of a function.
    const VECTORS: usize;
    /// Size of BAR 0, bytes.
    const REGISTERS: u64;

    /// Returns the configuration space of a function with these memory ranges, as the BIOS leaves it.
    fn config(&self, end: End, bars: &[BarMask]) -> ConfigSpace;
    /// Sets the reset values of registers; all registers are zero before.
    fn reset(&mut self, side: &mut Side, end: End);
    /// Returns the widths in bytes that a register has; none if there is no register at this offset.
    fn widths(&self, offset: u64) -> &'static [usize];
    /// Returns the end whose register a host at `end` reaches at `offset`, and the offset there.
    fn place(&self, end: End, offset: u64) -> (End, u64);
    /// Executes a write of a register, of a width that the register has, by the host at `end`.
    fn write(&mut self, sides: &mut [Side; 2], end: End, offset: u64, value: u64, len: usize);
    /// Brings the link into the state that follows from the registers, the power and the cable.
    fn update_link(&mut self, sides: &mut [Side; 2], is_plugged: bool);
    /// Returns true if a function sees the link up.
    fn is_up(&self, side: &Side) -> bool;
    /// Returns the bus address in the other host of `len` bytes at `offset` of a window of the host at `from`; None if
    /// the chip does not let an access pass.
    fn translate(&self, sides: &[Side; 2], from: End, window: usize, offset: u64, len: u64) -> Option<u64>;
    /// Counts a write that was not let into the memory of a host, if the chip does.
    fn count_missed(&self, _side: &mut Side) {}
}

/// Two functions joined by a cable.
pub struct Joined<F> {
    family: F,
    sides: [Side; 2],
    window: u64,
    is_plugged: bool,
}

impl<F: Family> Joined<F> {
    /// Creates two functions with two windows of `window` bytes each, a power of two, and a cable between them.
    pub fn new(mut family: F, window: u64) -> Joined<F> {
        assert!(window.is_power_of_two() && window >= 4096, "windows of {window} bytes");
        let bars = [0, 2, 4].map(|index| BarMask { index, size: if index == 0 { F::REGISTERS } else { window } });
        let sides = End::BOTH.map(|end| {
            let mut side = Side::new(family.config(end, &bars), F::REGISTERS, F::VECTORS);
            family.reset(&mut side, end);
            side
        });
        Joined { family, sides, window, is_plugged: true }
    }

    fn side(&mut self, end: End) -> &mut Side {
        &mut self.sides[end as usize]
    }

    fn update_link(&mut self) {
        self.family.update_link(&mut self.sides, self.is_plugged);
    }

    fn is_understood(&mut self, end: End, offset: u64, len: usize) -> bool {
        let is_understood = self.family.widths(offset).contains(&len) && offset.is_multiple_of(len as u64);
        if !is_understood {
            log::info!("{end:?}: an access of {len} bytes at {offset:#x}, where no register has this width");
            self.side(end).counts.misunderstood += 1;
        }
        is_understood
    }

    fn read_register(&mut self, end: End, offset: u64, data: &mut [u8]) {
        self.side(end).counts.reads += 1;
        if !self.is_understood(end, offset, data.len()) {
            return data.fill(0);
        }
        let (owner, offset) = self.family.place(end, offset);
        let (value, len) = (self.side(owner).get(offset, data.len()), data.len());
        data.copy_from_slice(&value.to_le_bytes()[..len]);
    }

    fn write_register(&mut self, end: End, offset: u64, data: &[u8]) {
        self.side(end).counts.writes += 1;
        if self.is_understood(end, offset, data.len()) {
            self.family.write(&mut self.sides, end, offset, number(data), data.len());
            self.update_link();
        }
    }

    /// Returns the bus address in the other host behind a place in a window; None if the access does not get there.
    fn address(&self, end: End, window: usize, offset: u64, len: usize) -> Option<u64> {
        let is_open = self.family.is_up(&self.sides[end as usize]);
        self.family.translate(&self.sides, end, window, offset, len as u64).filter(|_| is_open)
    }

    fn write_window(&mut self, end: End, window: usize, offset: u64, data: &[u8]) {
        let address = self.address(end, window, offset, data.len());
        let has_arrived = address.is_some_and(|address| self.side(end.opposite()).host.write(address, data));
        let counts = &mut self.side(end).counts;
        if has_arrived {
            counts.window_writes += 1;
            counts.window_bytes += data.len() as u64;
        } else {
            counts.dropped += 1;
            self.family.count_missed(&mut self.sides[end.opposite() as usize]);
        }
    }

    fn read_window(&mut self, end: End, window: usize, offset: u64, data: &mut [u8]) {
        self.side(end).counts.window_reads += 1;
        let address = self.address(end, window, offset, data.len());
        if !address.is_some_and(|address| self.side(end.opposite()).host.read(address, data)) {
            data.fill(0xff);
        }
    }

    fn reset_side(&mut self, end: End) {
        let side = &mut self.sides[end as usize];
        side.clear();
        self.family.reset(side, end);
    }
}

impl<F: Family> Chip for Joined<F> {
    fn vectors(&self) -> usize {
        F::VECTORS
    }

    fn bars(&self, _end: End) -> [u64; 6] {
        [F::REGISTERS, 0, self.window, 0, self.window, 0]
    }

    fn host(&mut self, end: End) -> &mut HostSide {
        &mut self.side(end).host
    }

    fn read(&mut self, end: End, space: Space, offset: u64, data: &mut [u8]) {
        match space {
            _ if self.side(end).is_gone => data.fill(0xff),
            Space::Config => self.side(end).config.read(offset as usize, data),
            Space::Bar(0) => self.read_register(end, offset, data),
            Space::Bar(bar) => self.read_window(end, usize::from(bar) / 2 - 1, offset, data),
        }
    }

    fn write(&mut self, end: End, space: Space, offset: u64, data: &[u8]) {
        match space {
            _ if self.side(end).is_gone => {}
            Space::Bar(0) if self.side(end).stuck.contains(&offset) => {}
            Space::Config => self.side(end).config.write(offset as usize, data),
            Space::Bar(0) => self.write_register(end, offset, data),
            Space::Bar(bar) => self.write_window(end, usize::from(bar) / 2 - 1, offset, data),
        }
    }

    fn reset(&mut self, end: End) {
        self.reset_side(end);
        self.update_link();
    }

    fn set_power(&mut self, end: End, is_on: bool) {
        if !is_on {
            self.reset_side(end);
            self.side(end).host.clear();
        }
        self.side(end).is_powered = is_on;
        self.update_link();
    }

    fn set_cable(&mut self, is_plugged: bool) {
        self.is_plugged = is_plugged;
        self.update_link();
    }

    fn configure(&mut self, end: End, space: Space, offset: u64, value: u64, len: usize) {
        self.side(end).configure(space, offset, value, len);
    }

    fn set_gone(&mut self, end: End, is_gone: bool) {
        self.side(end).is_gone = is_gone;
    }

    fn set_stuck(&mut self, end: End, offset: u64) {
        self.side(end).stuck.push(offset);
    }

    fn counts(&self, end: End) -> Counts {
        self.sides[end as usize].counts
    }
}
