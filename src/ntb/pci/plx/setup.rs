//! Modes, and their address translation.
//!
//! Back to back, the Link interfaces of two switches are cabled. Their addresses on the cable are a convention of both
//! hosts: those of base address register n begin at n · 2^61. The last memory range also leads to the registers of the
//! neighbour's switch: if it has 2 MiB or more, its first half does, and its second half is for data.
//!
//! From NTB to root port, the second host enumerates the Link interface of the same switch as a function of its own.

use super::identity::{PlxIdentity, Side, NAME};
use super::page::*;
use crate::chip::Aperture;
use crate::error::PciError;
use crate::function::{Bar, Function};

/// Smallest size of a window, bytes.
const WINDOW_MIN: u64 = 1 << 20;

/// Base address registers of windows.
const WINDOWS: [u8; 2] = [2, 4];

/// Mode of an NTB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Two switches, the Link interfaces of which are cabled.
    BackToBack {
        /// Base address register of the range that leads to the neighbour's registers.
        registers: u8,
    },
    /// One switch between two hosts.
    RootPort,
}

/// Returns the address on the cable at which the range of a base address register begins.
fn on_cable(bar: u8) -> u64 {
    u64::from(bar) << 61
}

/// The parts of the set-up that do not change.
pub(super) struct Setup {
    pub mode: Mode,
    pub aperture: Aperture,
    /// Size of the incoming range, bytes; back to back the largest.
    pub incoming: u64,
    /// Memory ranges for windows.
    ranges: Vec<Bar>,
}

impl Setup {
    /// Finds out the mode, and chooses the window. Fails if there is no memory range for one.
    pub fn find(function: &dyn Function, identity: &PlxIdentity, other: &Page) -> Result<Setup, PciError> {
        let unusable = |problem: String, help| {
            let identity = function.identity();
            Err(PciError::Unusable { chip: NAME, identity, problem, help })
        };
        let ranges: Vec<Bar> = WINDOWS.iter().filter_map(|&bar| function.bar(bar)).collect();
        let help = "Set BAR 2 or BAR 4 to 64 bits and a size from 1 MiB on in the EEPROM of the switch";
        if let Some(small) = ranges.iter().find(|bar| !bar.is_64bit || bar.size < WINDOW_MIN) {
            let (index, bits) = (small.index, if small.is_64bit { 64 } else { 32 });
            return unusable(format!("its memory range {index} has {bits} bits and {} bytes", small.size), help);
        }
        let is_back_to_back = identity.side == Side::Virtual && !is_enumerated(other, &ranges);
        let registers = ranges.last().map(|bar| bar.index).filter(|_| is_back_to_back);
        let data = |bar: &Bar| match registers {
            Some(registers) if registers != bar.index => Aperture { bar: bar.index, offset: 0, size: bar.size },
            Some(_) if bar.size < 2 * WINDOW_MIN => Aperture { bar: bar.index, offset: 0, size: 0 },
            Some(_) => Aperture { bar: bar.index, offset: bar.size / 2, size: bar.size / 2 },
            None => Aperture { bar: bar.index, offset: 0, size: bar.size },
        };
        // Of ranges with the same size the first one, as `max_by_key` returns the last.
        let aperture = ranges.iter().rev().map(data).max_by_key(|aperture| aperture.size);
        let Some(aperture) = aperture.filter(|aperture| aperture.size > 0 && function.bar(0).is_some()) else {
            return unusable("it has no memory range for a window".into(), help);
        };
        match registers {
            Some(registers) => {
                // One page: a mapping of more would hinder write-combining behind it.
                function.map_registers(registers, offset(identity.nt, Side::Virtual), PAGE)?;
                Ok(Setup { mode: Mode::BackToBack { registers }, aperture, incoming: aperture.size, ranges })
            }
            None => {
                let incoming = (other.read_long(bar_setup(aperture.bar)) & !BAR_TYPE).wrapping_neg();
                match incoming >= WINDOW_MIN && incoming.is_power_of_two() {
                    true => Ok(Setup { mode: Mode::RootPort, aperture, incoming, ranges }),
                    false => {
                        let problem = format!("BAR {} of its other interface is off", aperture.bar);
                        unusable(problem, "Set it to the same size at both interfaces in the EEPROM")
                    }
                }
            }
        }
    }

    /// Returns true if another operating system than this one has given addresses to the other interface.
    pub fn is_enumerated(&self, other: &Page) -> bool {
        is_enumerated(other, &self.ranges)
    }

    /// Returns the size of the range that a translation of `size` bytes lets through, bytes.
    pub fn translated(&self, size: u64) -> u64 {
        match self.mode {
            Mode::BackToBack { .. } => size.next_power_of_two().max(WINDOW_MIN),
            Mode::RootPort => self.incoming,
        }
    }

    /// Sets up what lies between the own interface and the cable.
    pub fn join(&self, own: &Page, other: &Page) {
        let Mode::BackToBack { registers } = self.mode else { return };
        other.write(BAR0_SETUP, BAR0_SETUP_64BIT);
        other.write_long(BAR0, on_cable(registers) | 4);
        for range in &self.ranges {
            own.write_long(translation(range.index), on_cable(range.index));
        }
        other.write(COMMAND, COMMAND_MEMORY_AND_BUS_MASTER);
    }

    /// Stops what comes in through all ranges. With a root port the translation leads to addresses at which there is no
    /// memory: those below the size of the range.
    pub fn close(&self, other: &Page) {
        for range in &self.ranges {
            if self.mode != Mode::RootPort {
                other.write_long(bar_setup(range.index), 0);
            }
            other.write_long(translation(range.index), 0);
        }
    }

    /// Lets the neighbour write memory at `iova`. Fails with the name of a register, its value and the value that it
    /// should have.
    pub fn translate(&self, other: &Page, iova: u64, size: u64) -> Result<(), (&'static str, u64, u64)> {
        let set = |name, register, value: u64, mask: u64| {
            other.write_long(register, value);
            match other.read_long(register) & mask {
                found if found == value & mask => Ok(()),
                found => Err((name, found, value & mask)),
            }
        };
        let Aperture { bar: index, offset, .. } = self.aperture;
        if self.mode != Mode::RootPort {
            let size = self.translated(size);
            set("BAR setup", bar_setup(index), !(size - 1) | BAR_SETUP_64BIT, u64::MAX)?;
            set("BAR of the Link interface", bar(index), on_cable(index) + offset, !BAR_TYPE)?;
        }
        set("address translation", translation(index), iova, u64::MAX)
    }
}

fn is_enumerated(other: &Page, ranges: &[Bar]) -> bool {
    let mine = |address: u64| address == 0 || WINDOWS.iter().any(|&bar| address >> 61 == u64::from(bar));
    let bars = [BAR0].into_iter().chain(ranges.iter().map(|range| bar(range.index)));
    let line = other.read(INTERRUPT) as u8;
    !bars.into_iter().all(|bar| mine(other.read_long(bar) & !BAR_TYPE)) || !matches!(line, 0 | 0xff)
}
