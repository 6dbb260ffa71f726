//! The registers that all generations of Intel's chips have.

use crate::cable::End;
use crate::side::Side;

pub const CONTROL: u64 = 0;
const BASE: [u64; 2] = [0x10, 0x20];
const LIMIT: [u64; 2] = [0x18, 0x28];
pub const INT_STATUS: u64 = 0x40;
const INT_DISABLE: u64 = 0x48;
const ALL_INTERRUPTS: u64 = (1 << 33) - 1;
const SCRATCHPAD: u64 = 0x80;
const SCRATCHPADS: u64 = 0x40;
const PEER_DOORBELL: u64 = 0x100;
const PEER_DOORBELL_END: u64 = 0x180;
/// The interrupt of the link, behind those of the doorbells.
pub const LINK_BIT: u32 = 32;
pub const VECTORS: usize = 33;

/// States of the link status register.
pub const LINK_DOWN: u64 = 0x0001;
/// The link is up, with 8 lanes.
pub const fn link_up(generation: u64) -> u64 {
    0x2080 | generation
}

/// The places of registers, in which the generations differ.
pub struct Places {
    /// Vectors of the interrupts.
    pub int_vector: u64,
    pub peer_scratchpad: u64,
    /// A vector that does not work (erratum).
    pub dead_vector: Option<usize>,
}

impl Places {
    pub fn reset(&self, side: &mut Side) {
        side.set(INT_DISABLE, ALL_INTERRUPTS, 8);
        for bit in 0..=LINK_BIT {
            side.set(self.int_vector + u64::from(bit), if bit == LINK_BIT { 0 } else { u64::from(bit) + 1 }, 1);
        }
    }

    pub fn widths(&self, offset: u64) -> &'static [usize] {
        match offset {
            CONTROL | SCRATCHPAD..0xc0 | PEER_DOORBELL..PEER_DOORBELL_END => &[4],
            0x10..0x30 | INT_STATUS..0x50 => &[8],
            _ if self.is_peer_scratchpad(offset) => &[4],
            _ if (self.int_vector..=self.int_vector + u64::from(LINK_BIT)).contains(&offset) => &[1],
            _ => &[],
        }
    }

    pub fn place(&self, end: End, offset: u64) -> (End, u64) {
        match self.is_peer_scratchpad(offset) {
            true => (end.opposite(), offset - self.peer_scratchpad + SCRATCHPAD),
            false => (end, offset),
        }
    }

    fn is_peer_scratchpad(&self, offset: u64) -> bool {
        (self.peer_scratchpad..self.peer_scratchpad + SCRATCHPADS).contains(&offset)
    }

    /// Executes a write of a register that all generations have, or of one that only holds its value.
    pub fn write(&self, sides: &mut [Side; 2], end: End, (offset, value, len): (u64, u64, usize), is_up: bool) {
        let (owner, at) = self.place(end, offset);
        match offset {
            PEER_DOORBELL..PEER_DOORBELL_END if is_up && value & 1 == 1 => {
                sides[end as usize].counts.doorbells += 1;
                self.set_pending(&mut sides[end.opposite() as usize], (offset - PEER_DOORBELL) as u32 / 4);
            }
            PEER_DOORBELL..PEER_DOORBELL_END => {}
            _ if owner != end && !is_up => {}
            INT_STATUS => sides[end as usize].change(INT_STATUS, 0, value, 8),
            _ => sides[owner as usize].set(at, value, len),
        }
        self.update_interrupts(&mut sides[end as usize]);
    }

    /// Raises the vectors of interrupts that have become pending or enabled.
    fn update_interrupts(&self, side: &mut Side) {
        let now = side.get(INT_STATUS, 8) & !side.get(INT_DISABLE, 8) & ALL_INTERRUPTS;
        side.raise(now, |side, bit| {
            let vector = side.get(self.int_vector + u64::from(bit), 1) as usize;
            (Some(vector) != self.dead_vector).then_some(vector)
        });
    }

    pub fn set_pending(&self, side: &mut Side, bit: u32) {
        side.change(INT_STATUS, 1 << bit, 0, 8);
        self.update_interrupts(side);
    }
}

/// Returns the translation of a window, if the host admits `end` bytes from its start: the limit is an address in terms
/// of the base address register of the window.
pub fn admitted(receiver: &Side, window: usize, end: u64) -> Option<u64> {
    let limit = receiver.get(LIMIT[window], 8).wrapping_sub(receiver.config.bar(2 + 2 * window as u8));
    let is_admitted = receiver.config.is_bus_master() && is_inside(receiver, window, end, limit);
    is_admitted.then(|| receiver.get(BASE[window], 8))
}

/// Returns true if `limit` bytes are a part of a window, and `end` bytes of them.
pub fn is_inside(receiver: &Side, window: usize, end: u64, limit: u64) -> bool {
    limit <= receiver.config.bars()[1 + window].size && end <= limit
}
