//! Intel gen3 (8086:201C), back to back: a function in each host, of which one is the downstream device.
//!
//! Known only by Linux's driver, which is tolerant: the reset values, the place of the MSI-X table, and that both limits
//! must admit an access.

use crate::cable::End;
use crate::config_space::{BarMask, Capabilities, ConfigSpace};
use crate::intel::{self, Places, CONTROL, LINK_BIT, LINK_DOWN};
use crate::joined::Family;
use crate::side::Side;

const CAPABILITIES: Capabilities =
    Capabilities { vectors: intel::VECTORS, msix: 0x80, table: 0x8000, express: 0x90, power: 0xe0 };
const PLACES: Places = Places { int_vector: 0xd0, peer_scratchpad: 0x180, dead_vector: Some(32) };

const CONTROL_DISABLE: u64 = 1 << 1;
const CONTROL_RESET: u64 = 0b11;
const MISSED: u64 = 0x70;
const CABLE_LIMIT: [u64; 2] = [0x4018, 0x4028];
const CABLE_BASE: [u64; 2] = [0x4518, 0x4520];
/// Addresses of the two windows on the cable.
const CABLE: [u64; 2] = [0x2000_0000_0000_0000, 0x4000_0000_0000_0000];
/// Configuration space: link status.
const LINK_STATUS: usize = 0x1a2;
const LINK_UP: u64 = intel::link_up(3);

/// The registers.
pub struct Skx;

impl Family for Skx {
    const VECTORS: usize = intel::VECTORS;
    const REGISTERS: u64 = 0x1_0000;

    fn config(&self, end: End, bars: &[BarMask]) -> ConfigSpace {
        let mut config = ConfigSpace::new(0x8086, 0x201c, 7, bars);
        config.add(&CAPABILITIES);
        config.set(0xd0, u64::from(bars[1].size.trailing_zeros()) * 0x0101_0101, 4); // sizes of the windows
        config.set(0xd4, if end == End::B { 0x11 } else { 0x01 }, 1); // back to back; B is the downstream device
        config.set(LINK_STATUS, LINK_DOWN, 2);
        config
    }

    fn reset(&mut self, side: &mut Side, _end: End) {
        PLACES.reset(side);
        side.set(CONTROL, CONTROL_RESET, 4);
        for window in 0..2 {
            side.set(CABLE_BASE[window], CABLE[window] | 0xc, 8);
            // The limit is the base: nothing passes.
            side.set(CABLE_LIMIT[window], CABLE[window], 8);
        }
    }

    fn widths(&self, offset: u64) -> &'static [usize] {
        match offset {
            0x4010..0x4030 | 0x4510..0x4528 => &[8],
            // The external side, which means nothing back to back, and which Linux shows in its debugging files.
            0x4040..0x4050 | 0x4100 => &[8],
            MISSED | 0x4504 => &[2],
            _ => PLACES.widths(offset),
        }
    }

    fn place(&self, end: End, offset: u64) -> (End, u64) {
        PLACES.place(end, offset)
    }

    fn write(&mut self, sides: &mut [Side; 2], end: End, offset: u64, value: u64, len: usize) {
        let is_up = self.is_up(&sides[end as usize]);
        PLACES.write(sides, end, (offset, value, len), is_up);
    }

    fn update_link(&mut self, sides: &mut [Side; 2], is_plugged: bool) {
        let is_enabled = |side: &Side| side.is_powered && side.get(CONTROL, 4) & CONTROL_DISABLE == 0;
        let is_up = is_plugged && sides.iter().all(is_enabled);
        for side in sides {
            if self.is_up(side) != is_up {
                side.config.set(LINK_STATUS, if is_up { LINK_UP } else { LINK_DOWN }, 2);
                PLACES.set_pending(side, LINK_BIT);
            }
        }
    }

    fn is_up(&self, side: &Side) -> bool {
        side.config.get(LINK_STATUS, 2) == LINK_UP
    }

    fn translate(&self, sides: &[Side; 2], from: End, window: usize, offset: u64, len: u64) -> Option<u64> {
        let receiver = &sides[from.opposite() as usize];
        let end = offset.checked_add(len)?;
        let cable = receiver.get(CABLE_LIMIT[window], 8).wrapping_sub(receiver.get(CABLE_BASE[window], 8) & !0xf);
        let base = intel::admitted(receiver, window, end)?;
        intel::is_inside(receiver, window, end, cable).then(|| base.wrapping_add(offset))
    }

    fn count_missed(&self, side: &mut Side) {
        side.set(MISSED, side.get(MISSED, 2).wrapping_add(1), 2);
    }
}
