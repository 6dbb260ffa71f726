//! Intel gen4 and gen5, back to back: Ice Lake, and its successors from Sapphire Rapids on (8086:347E).
//!
//! Known only by Linux's driver: the reset values, the place of the MSI-X table, that a link that was lost trains again
//! (that driver asks for training once), and that an Ice Lake takes its size index for a second limit.

use crate::cable::End;
use crate::config_space::{BarMask, Capabilities, ConfigSpace};
use crate::intel::{self, Places, INT_STATUS, LINK_BIT, LINK_DOWN};
use crate::joined::Family;
use crate::side::Side;

/// The MSI-X table lies between the registers of the link.
const CAPABILITIES: Capabilities =
    Capabilities { vectors: intel::VECTORS, msix: 0x80, table: 0xd000, express: 0x40, power: 0xe0 };
const PLACES: Places = Places { int_vector: 0x50, peer_scratchpad: 0x8080, dead_vector: None };

/// Logarithms of the sizes of the windows.
const BASE_INDEX: [u64; 2] = [0x74, 0x76];
const LINK_CONTROL: u64 = 0xb050;
const LINK_DISABLE: u64 = 1 << 4;
const LINK_STATUS: u64 = 0xb052;
const LINK_UP: u64 = intel::link_up(4);
const SLOT_STATUS: u64 = 0xb05a;
const LINK_STATE_CHANGED: u64 = 1 << 8;
const PPD0: u64 = 0xb0d4;
const PPD0_END_TRAINING: u64 = 1 << 0;
const PPD0_TRAIN: u64 = 1 << 3;
const PPD1: u64 = 0xb4c0;
const PPD1_BACK_TO_BACK: u64 = 0x200;
/// The downstream device: a request of the BIOS, which an Ice Lake takes for granted, and the state of its successors.
const PPD1_REQUEST: u64 = 1 << 12;
const PPD1_STATE: u64 = 1 << 14;

/// The registers of one of the two kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icx {
    /// Ice Lake.
    IceLake,
    /// Sapphire Rapids and later.
    SapphireRapids,
}

impl Family for Icx {
    const VECTORS: usize = intel::VECTORS;
    const REGISTERS: u64 = 0x1_0000;

    fn config(&self, _end: End, bars: &[BarMask]) -> ConfigSpace {
        let mut config = ConfigSpace::new(0x8086, 0x347e, if *self == Icx::IceLake { 0x04 } else { 0x10 }, bars);
        config.add(&CAPABILITIES);
        config.set(0xc4, u64::from(bars[1].size.trailing_zeros()) * 0x0101_0101, 4); // sizes of the windows
        config
    }

    fn reset(&mut self, side: &mut Side, end: End) {
        PLACES.reset(side);
        side.set(LINK_STATUS, LINK_DOWN, 2);
        // The two ends of Sapphire Rapids have agreed on the opposite of what the BIOS has asked for.
        let device = match (self, end) {
            (Icx::IceLake, End::A) => 0,
            (Icx::IceLake, End::B) | (Icx::SapphireRapids, End::A) => PPD1_REQUEST,
            (Icx::SapphireRapids, End::B) => PPD1_STATE,
        };
        side.set(PPD1, PPD1_BACK_TO_BACK | device, 4);
    }

    fn widths(&self, offset: u64) -> &'static [usize] {
        match (self, offset) {
            (_, 0x74 | 0x76 | LINK_CONTROL | LINK_STATUS | SLOT_STATUS) => &[2],
            (_, 0xc0 | 0xc4 | PPD0 | PPD1) => &[4],
            // Latency tolerance, broken in Ice Lake.
            (Icx::SapphireRapids, 0x30ec) => &[1],
            (Icx::SapphireRapids, 0x30f0 | 0x30f4) => &[4],
            _ => PLACES.widths(offset),
        }
    }

    fn place(&self, end: End, offset: u64) -> (End, u64) {
        PLACES.place(end, offset)
    }

    fn write(&mut self, sides: &mut [Side; 2], end: End, offset: u64, mut value: u64, len: usize) {
        let side = &mut sides[end as usize];
        match offset {
            LINK_STATUS | PPD1 => return,
            SLOT_STATUS => return side.change(SLOT_STATUS, 0, value & LINK_STATE_CHANGED, len),
            PPD0 if value & PPD0_END_TRAINING != 0 => value = 0,
            PPD0 => value &= PPD0_TRAIN,
            INT_STATUS if *self == Icx::IceLake && side.get(SLOT_STATUS, 2) & LINK_STATE_CHANGED != 0 => {
                value &= !(1 << LINK_BIT);
            }
            _ => {}
        }
        let is_up = self.is_up(side);
        PLACES.write(sides, end, (offset, value, len), is_up);
    }

    fn update_link(&mut self, sides: &mut [Side; 2], is_plugged: bool) {
        let is_training = |side: &Side| {
            side.is_powered && side.get(LINK_CONTROL, 2) & LINK_DISABLE == 0 && side.get(PPD0, 4) & PPD0_TRAIN != 0
        };
        let is_up = is_plugged && sides.iter().all(is_training);
        for side in sides {
            if self.is_up(side) == is_up {
                continue;
            }
            side.set(LINK_STATUS, if is_up { LINK_UP } else { LINK_DOWN }, 2);
            side.change(SLOT_STATUS, LINK_STATE_CHANGED, 0, 2);
            PLACES.set_pending(side, LINK_BIT);
        }
    }

    fn is_up(&self, side: &Side) -> bool {
        side.get(LINK_STATUS, 2) == LINK_UP
    }

    fn translate(&self, sides: &[Side; 2], from: End, window: usize, offset: u64, len: u64) -> Option<u64> {
        let receiver = &sides[from.opposite() as usize];
        let end = offset.checked_add(len)?;
        let base = intel::admitted(receiver, window, end)?;
        let align = match self {
            Icx::IceLake => receiver.config.bars()[1 + window].size,
            Icx::SapphireRapids => 4096,
        };
        let is_indexed = *self == Icx::SapphireRapids || {
            let index = receiver.get(BASE_INDEX[window], 2) as u32;
            end <= 1u64.checked_shl(index).unwrap_or(0)
        };
        is_indexed.then(|| (base & !(align - 1)).wrapping_add(offset))
    }
}
