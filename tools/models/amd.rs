//! AMD (1022:148B): one device, which the primary host (end A) has in its processor and the secondary one (end B) reaches
//! over the cable. Each host has a block of registers and sees the other's as well. A translation lies in the block of
//! the host whose writes enter there.
//!
//! Known only by Linux's driver: the reset values, the place of the MSI-X table, that an address range without a limit
//! is closed, that the controls of both ends must be set, and that the secondary host still reaches the registers while
//! the link is down.

use crate::cable::End;
use crate::config_space::{BarMask, Capabilities, ConfigSpace};
use crate::joined::Family;
use crate::side::Side;
use std::collections::VecDeque;

const CAPABILITIES: Capabilities = Capabilities { vectors: 24, msix: 0xc0, table: 0x8000, express: 0x64, power: 0x50 };
/// With fewer vectors, all interrupts have the first one.
const LEAST_VECTORS: usize = 16;
const LINK_STATUS: usize = CAPABILITIES.express + 0x12;

/// The blocks: a host's own registers lie below the place where the first register of the other block lies.
const PEER: u64 = 0x400;
const PEER_REGISTERS: u64 = PEER + CONTROL;
const CONTROL: u64 = 0x200;
const CONTROL_ENABLE: u64 = 0b11 << 20;
/// Eight scratchpads that the primary host reads, then eight of the secondary one.
const SCRATCHPAD: u64 = 0x210;
const SECONDARY_SCRATCHPAD: u64 = SCRATCHPAD + 0x20;
const SCRATCHPAD_END: u64 = SCRATCHPAD + 0x40;
const SIDE_INFO: u64 = 0x408;
const SIDE_SECONDARY: u64 = 1 << 0;
const SIDE_READY: u64 = 1 << 1;
const LIMIT: [u64; 2] = [0x418, 0x420];
const TRANSLATION: [u64; 2] = [0x438, 0x440];
const DOORBELL_REQUEST: u64 = 0x454;
const DOORBELL_MASK: u64 = 0x45c;
const DOORBELL_STATUS: u64 = 0x460;
const EVENT_MASK: u64 = 0x470;
const EVENT_STATUS: u64 = 0x474;
const EVENT_ACKNOWLEDGE: u64 = 0x4a0;
const EVENT_LINK_UP: u64 = 1 << 5;
const EVENT_LINK_DOWN: u64 = 1 << 6;
const ALL_EVENTS: u64 = 0x7f;

/// Events of one host. The chip delivers one at a time.
#[derive(Default)]
struct Events {
    /// The event that was delivered and is not yet acknowledged and cleared; 0: none.
    delivered: u64,
    waiting: VecDeque<u64>,
}

/// The registers, and what the chip knows beside them.
#[derive(Default)]
pub struct Amd {
    is_up: bool,
    events: [Events; 2],
}

impl Amd {
    /// Delivers the next event if the host has acknowledged and cleared the one before, and raises interrupts.
    fn deliver(&mut self, sides: &mut [Side; 2], end: End) {
        let (side, events) = (&mut sides[end as usize], &mut self.events[end as usize]);
        let acknowledged = side.get(EVENT_ACKNOWLEDGE, 4) & !side.get(EVENT_STATUS, 4);
        if events.delivered & acknowledged != 0 {
            side.change(EVENT_ACKNOWLEDGE, 0, events.delivered, 4);
            events.delivered = 0;
        }
        if events.delivered == 0 {
            events.delivered = events.waiting.pop_front().unwrap_or(0);
            side.change(EVENT_STATUS, events.delivered, 0, 4);
        }
        let doorbells = side.get(DOORBELL_STATUS, 2) & !side.get(DOORBELL_MASK, 2);
        let pending = side.get(EVENT_STATUS, 4) & !side.get(EVENT_MASK, 4) & ALL_EVENTS;
        side.raise(doorbells | pending << 16, |side, bit| match side.host.connected() {
            0..LEAST_VECTORS => Some(0),
            _ => Some(bit as usize),
        });
    }
}

impl Family for Amd {
    const VECTORS: usize = CAPABILITIES.vectors;
    const REGISTERS: u64 = 0x1_0000;

    fn config(&self, end: End, bars: &[BarMask]) -> ConfigSpace {
        let mut config = ConfigSpace::new(0x1022, 0x148b, 0, bars);
        config.add(&CAPABILITIES);
        // 16 lanes of generation 4. The secondary host's is the link inside the chip, not that of the cable.
        config.set(LINK_STATUS, if end == End::A { 0x1104 } else { 0x1011 }, 2);
        config
    }

    fn reset(&mut self, side: &mut Side, end: End) {
        self.events[end as usize] = Events::default();
        side.set(SIDE_INFO, if end == End::B { SIDE_SECONDARY } else { 0 }, 4);
        side.set(DOORBELL_MASK, 0xffff, 2);
        side.set(EVENT_MASK, ALL_EVENTS, 4);
    }

    fn widths(&self, offset: u64) -> &'static [usize] {
        match if offset >= PEER_REGISTERS { offset - PEER } else { offset } {
            // Not in the other block: the scratchpads of both hosts lie here.
            SCRATCHPAD..SCRATCHPAD_END if offset >= PEER_REGISTERS => &[],
            CONTROL | 0x204 | SCRATCHPAD..SCRATCHPAD_END | SIDE_INFO => &[4],
            0x418 | 0x420 | 0x438 | 0x440 => &[8],
            DOORBELL_REQUEST | DOORBELL_MASK | DOORBELL_STATUS => &[2],
            0x450 | 0x458 | EVENT_MASK | EVENT_STATUS | 0x480 | 0x498 | EVENT_ACKNOWLEDGE => &[4],
            _ => &[],
        }
    }

    fn place(&self, end: End, offset: u64) -> (End, u64) {
        match offset {
            SCRATCHPAD..SECONDARY_SCRATCHPAD => (End::A, offset),
            SECONDARY_SCRATCHPAD..SCRATCHPAD_END => (End::B, offset),
            PEER_REGISTERS.. => (end.opposite(), offset - PEER),
            _ => (end, offset),
        }
    }

    fn write(&mut self, sides: &mut [Side; 2], end: End, offset: u64, value: u64, len: usize) {
        let (owner, at) = self.place(end, offset);
        let side = &mut sides[owner as usize];
        match at {
            SCRATCHPAD..SCRATCHPAD_END if owner != end && !self.is_up => {}
            SIDE_INFO => side.change(at, value & SIDE_READY, !value & SIDE_READY, len),
            DOORBELL_STATUS | EVENT_STATUS => side.change(at, 0, value, len),
            DOORBELL_REQUEST if self.is_up => {
                sides[end as usize].counts.doorbells += u64::from(value.count_ones());
                sides[owner.opposite() as usize].change(DOORBELL_STATUS, value, 0, 2);
            }
            DOORBELL_REQUEST => {}
            // A size, of as many bits as the window has.
            _ if LIMIT.contains(&at) => side.set(at, value & (2 * side.config.bars()[1].size - 1), len),
            _ if TRANSLATION.contains(&at) => side.set(at, value & !0xfff, len),
            _ => side.set(at, value, len),
        }
        End::BOTH.into_iter().for_each(|end| self.deliver(sides, end));
    }

    fn update_link(&mut self, sides: &mut [Side; 2], is_plugged: bool) {
        let is_up = is_plugged && sides.iter().all(|side| side.is_powered);
        if self.is_up == is_up {
            return;
        }
        self.is_up = is_up;
        for end in End::BOTH {
            if !sides[end as usize].is_powered {
                continue;
            }
            let event = if is_up { EVENT_LINK_UP } else { EVENT_LINK_DOWN };
            self.events[end as usize].waiting.push_back(event);
            self.deliver(sides, end);
        }
    }

    fn is_up(&self, _side: &Side) -> bool {
        self.is_up
    }

    fn translate(&self, sides: &[Side; 2], from: End, window: usize, offset: u64, len: u64) -> Option<u64> {
        let [entry, receiver] = [from, from.opposite()].map(|end| &sides[end as usize]);
        let is_enabled = |side: &Side| side.get(CONTROL, 4) & CONTROL_ENABLE == CONTROL_ENABLE;
        let is_admitted = offset.checked_add(len)? <= entry.get(LIMIT[window], 8) && receiver.config.is_bus_master();
        let address = entry.get(TRANSLATION[window], 8).wrapping_add(offset);
        (is_admitted && sides.iter().all(is_enabled)).then_some(address)
    }
}
