//! Intel gen3 (8086:201C), back to back: a function in each host, of which one is the downstream device.
//!
//! Known only by Linux's driver, which is tolerant: the reset values, the place of the MSI-X table, and that both limits
//! must admit an access.

use crate::cable::{Chip, Counts, End};
use crate::config_space::{number, BarMask, ConfigSpace};
use crate::host_side::HostSide;
use ntbring_pci::Space;

const VECTORS: usize = 33;
const BAR0_SIZE: u64 = 0x1_0000;
/// The MSI-X table and the pending bits lie behind the registers.
const MSIX_TABLE: u64 = 0x8000;
const MSIX_PENDING: u64 = 0x9000;

const CONTROL: u64 = 0;
const CONTROL_DISABLE: u64 = 1 << 1;
const CONTROL_RESET: u64 = 0b11;
const BASE: [u64; 2] = [0x10, 0x20];
const LIMIT: [u64; 2] = [0x18, 0x28];
const INT_STATUS: u64 = 0x40;
const INT_DISABLE: u64 = 0x48;
const ALL_INTERRUPTS: u64 = (1 << 33) - 1;
const MISSED: u64 = 0x70;
const SCRATCHPAD: u64 = 0x80;
const INT_VECTOR: u64 = 0xd0;
const PEER_DOORBELL: u64 = 0x100;
const PEER_SCRATCHPAD: u64 = 0x180;
const PEER_SCRATCHPAD_END: u64 = 0x1c0;
const CABLE_LIMIT: [u64; 2] = [0x4018, 0x4028];
const CABLE_BASE: [u64; 2] = [0x4518, 0x4520];
/// Addresses of the two windows on the cable.
const CABLE: [u64; 2] = [0x2000_0000_0000_0000, 0x4000_0000_0000_0000];

const LINK_STATUS: usize = 0x1a2;
const LINK_UP: u64 = 0x2083; // active, 8 lanes, gen3
const LINK_DOWN: u64 = 0x0001;
const LINK_BIT: u32 = 32;
/// The vector of the link by design, which does not work (erratum).
const DEAD_VECTOR: usize = 32;

/// The function in one host.
struct Side {
    config: ConfigSpace,
    registers: Vec<u8>,
    host: HostSide,
    /// The interrupts that were pending and not disabled when last looked at: an interrupt is an edge of them.
    raised: u64,
    is_powered: bool,
    /// Fault: the function has vanished.
    is_gone: bool,
    /// Fault: registers that ignore writes.
    stuck: Vec<u64>,
    counts: Counts,
}

impl Side {
    fn new(end: End, window: u64) -> Side {
        let bars = [0, 2, 4].map(|index| BarMask { index, size: if index == 0 { BAR0_SIZE } else { window } });
        let mut config = ConfigSpace::new(0x8086, 0x201c, 7, &bars);
        config.set(0x06, 0x0010, 2); // there is a list of capabilities
        config.set(0x34, 0x80, 1);
        config.set(0x80, 0x11 | 0x90 << 8 | (VECTORS as u64 - 1) << 16, 4); // MSI-X
        config.set(0x84, MSIX_TABLE, 4);
        config.set(0x88, MSIX_PENDING, 4);
        config.allow(0x82, 0xc000, 2);
        config.set(0x90, 0x10 | 0xe0 << 8 | 0x0092 << 16, 4); // PCI Express 2, integrated endpoint
        config.set(0x94, 0x8001, 4);
        config.allow(0x98, 0xffff, 2);
        config.set(0xe0, 0x01 | 0x0003 << 16, 4); // power management
        config.set(0xe4, 0x0008, 2);
        config.allow(0xe4, 0x0103, 2);
        config.set(0xd0, u64::from(window.trailing_zeros()) * 0x0101_0101, 4); // sizes of the windows
        config.set(0xd4, if end == End::B { 0x11 } else { 0x01 }, 1); // back to back; B is the downstream device
        config.set(LINK_STATUS, LINK_DOWN, 2);
        let mut side = Side {
            config,
            registers: vec![0; BAR0_SIZE as usize],
            host: HostSide::new(VECTORS),
            raised: 0,
            is_powered: false,
            is_gone: false,
            stuck: Vec::new(),
            counts: Counts::default(),
        };
        side.reset();
        side
    }

    fn reset(&mut self) {
        self.registers.fill(0);
        self.config.reset();
        self.set(CONTROL, CONTROL_RESET, 4);
        self.set(INT_DISABLE, ALL_INTERRUPTS, 8);
        for bit in 0..=LINK_BIT {
            self.set(INT_VECTOR + u64::from(bit), if bit == LINK_BIT { 0 } else { u64::from(bit) + 1 }, 1);
        }
        for window in 0..2 {
            self.set(CABLE_BASE[window], CABLE[window] | 0xc, 8);
            // The limit is the base: nothing passes.
            self.set(CABLE_LIMIT[window], CABLE[window], 8);
        }
        self.raised = 0;
    }

    fn get(&self, offset: u64, len: usize) -> u64 {
        number(&self.registers[offset as usize..][..len])
    }

    fn set(&mut self, offset: u64, value: u64, len: usize) {
        self.registers[offset as usize..][..len].copy_from_slice(&value.to_le_bytes()[..len]);
    }

    /// Raises the vectors of interrupts that have become pending or enabled.
    fn update_interrupts(&mut self) {
        let now = self.get(INT_STATUS, 8) & !self.get(INT_DISABLE, 8) & ALL_INTERRUPTS;
        let new = now & !self.raised;
        self.raised = now;
        for bit in (0..=u64::from(LINK_BIT)).filter(|bit| new >> bit & 1 == 1) {
            let vector = self.get(INT_VECTOR + bit, 1) as usize;
            if vector != DEAD_VECTOR && self.host.interrupt(vector) {
                self.counts.interrupts += 1;
            }
        }
    }

    fn set_pending(&mut self, bit: u32) {
        let status = self.get(INT_STATUS, 8) | 1 << bit;
        self.set(INT_STATUS, status, 8);
        self.update_interrupts();
    }

    /// Returns the bus address in this host of `len` bytes at `offset` of a window; None if they are not let through.
    fn translate(&self, window: usize, offset: u64, len: u64) -> Option<u64> {
        let base = self.get(BASE[window], 8);
        let own = self.get(LIMIT[window], 8).wrapping_sub(self.config.bar(2 + 2 * window as u8));
        let cable = self.get(CABLE_LIMIT[window], 8).wrapping_sub(self.get(CABLE_BASE[window], 8) & !0xf);
        let end = offset.checked_add(len)?;
        let is_inside = |limit: u64| limit <= self.config.bars()[1 + window].size && end <= limit;
        (self.config.is_bus_master() && is_inside(own) && is_inside(cable)).then(|| base.wrapping_add(offset))
    }

    fn is_link_up(&self) -> bool {
        self.config.get(LINK_STATUS, 2) == LINK_UP
    }
}

/// Two functions joined by a cable.
pub struct Skx {
    sides: [Side; 2],
    window: u64,
    is_plugged: bool,
}

impl Skx {
    /// Creates two functions with two windows of `window` bytes each, a power of two, and a cable between them.
    pub fn new(window: u64) -> Skx {
        assert!(window.is_power_of_two() && window >= 4096, "windows of {window} bytes");
        Skx { sides: End::BOTH.map(|end| Side::new(end, window)), window, is_plugged: true }
    }

    fn update_link(&mut self) {
        let is_enabled = |side: &Side| side.is_powered && side.get(CONTROL, 4) & CONTROL_DISABLE == 0;
        let is_up = self.is_plugged && self.sides.iter().all(is_enabled);
        for side in &mut self.sides {
            if side.is_link_up() != is_up {
                side.config.set(LINK_STATUS, if is_up { LINK_UP } else { LINK_DOWN }, 2);
                side.set_pending(LINK_BIT);
            }
        }
    }

    /// Returns the widths in bytes that a register has; None if it does not exist.
    fn widths(offset: u64) -> Option<&'static [usize]> {
        match offset {
            CONTROL => Some(&[4]),
            0x10..0x30 | INT_STATUS..0x50 | 0x4010..0x4030 | 0x4510..0x4528 => Some(&[8]),
            // The external side, which means nothing back to back, and which Linux shows in its debugging files.
            0x4040..0x4050 | 0x4100 => Some(&[8]),
            MISSED | 0x4504 => Some(&[2]),
            SCRATCHPAD..0xc0 | PEER_DOORBELL..PEER_SCRATCHPAD_END => Some(&[4]),
            INT_VECTOR..=0xf0 => Some(&[1]),
            _ => None,
        }
    }

    fn is_understood(&mut self, end: End, offset: u64, len: usize) -> bool {
        let is_understood =
            Self::widths(offset).is_some_and(|widths| widths.contains(&len) && offset % len as u64 == 0);
        if !is_understood {
            log::info!("{end:?}: an access of {len} bytes at {offset:#x}, where no register has this width");
            self.sides[end as usize].counts.misunderstood += 1;
        }
        is_understood
    }

    fn read_register(&mut self, end: End, offset: u64, data: &mut [u8]) {
        self.sides[end as usize].counts.reads += 1;
        if !self.is_understood(end, offset, data.len()) {
            return data.fill(0);
        }
        let (end, offset) = match offset {
            PEER_SCRATCHPAD..PEER_SCRATCHPAD_END => (end.opposite(), offset - PEER_SCRATCHPAD + SCRATCHPAD),
            _ => (end, offset),
        };
        let len = data.len();
        data.copy_from_slice(&self.sides[end as usize].registers[offset as usize..][..len]);
    }

    fn write_register(&mut self, end: End, offset: u64, data: &[u8]) {
        self.sides[end as usize].counts.writes += 1;
        if !self.is_understood(end, offset, data.len()) {
            return;
        }
        let (value, len) = (number(data), data.len());
        let is_up = self.sides[end as usize].is_link_up();
        let [mine, peer] = [end, end.opposite()].map(|end| end as usize);
        match offset {
            PEER_DOORBELL..PEER_SCRATCHPAD if is_up && value & 1 == 1 => {
                self.sides[mine].counts.doorbells += 1;
                self.sides[peer].set_pending((offset - PEER_DOORBELL) as u32 / 4);
            }
            PEER_DOORBELL..PEER_SCRATCHPAD => {}
            PEER_SCRATCHPAD..PEER_SCRATCHPAD_END if is_up => {
                self.sides[peer].set(offset - PEER_SCRATCHPAD + SCRATCHPAD, value, len);
            }
            PEER_SCRATCHPAD..PEER_SCRATCHPAD_END => {}
            INT_STATUS => {
                let pending = self.sides[mine].get(INT_STATUS, 8) & !value;
                self.sides[mine].set(INT_STATUS, pending, 8);
                self.sides[mine].update_interrupts();
            }
            _ => {
                self.sides[mine].set(offset, value, len);
                match offset {
                    INT_DISABLE => self.sides[mine].update_interrupts(),
                    CONTROL => self.update_link(),
                    _ => {}
                }
            }
        }
    }

    fn write_window(&mut self, end: End, window: usize, offset: u64, data: &[u8]) {
        let [mine, peer] = [end, end.opposite()].map(|end| end as usize);
        let address = self.sides[peer].translate(window, offset, data.len() as u64);
        let is_up = self.sides[mine].is_link_up();
        if address.is_some_and(|address| is_up && self.sides[peer].host.write(address, data)) {
            self.sides[mine].counts.window_writes += 1;
            self.sides[mine].counts.window_bytes += data.len() as u64;
        } else {
            self.sides[mine].counts.dropped += 1;
            let missed = self.sides[peer].get(MISSED, 2).wrapping_add(1);
            self.sides[peer].set(MISSED, missed, 2);
        }
    }

    fn read_window(&mut self, end: End, window: usize, offset: u64, data: &mut [u8]) {
        let [mine, peer] = [end, end.opposite()].map(|end| end as usize);
        self.sides[mine].counts.window_reads += 1;
        let address = self.sides[peer].translate(window, offset, data.len() as u64);
        if !address.is_some_and(|address| self.sides[mine].is_link_up() && self.sides[peer].host.read(address, data)) {
            data.fill(0xff);
        }
    }
}

impl Chip for Skx {
    fn vectors(&self) -> usize {
        VECTORS
    }

    fn bars(&self, _end: End) -> [u64; 6] {
        [BAR0_SIZE, 0, self.window, 0, self.window, 0]
    }

    fn host(&mut self, end: End) -> &mut HostSide {
        &mut self.sides[end as usize].host
    }

    fn read(&mut self, end: End, space: Space, offset: u64, data: &mut [u8]) {
        match space {
            _ if self.sides[end as usize].is_gone => data.fill(0xff),
            Space::Config => self.sides[end as usize].config.read(offset as usize, data),
            Space::Bar(0) => self.read_register(end, offset, data),
            Space::Bar(bar) => self.read_window(end, usize::from(bar) / 2 - 1, offset, data),
        }
    }

    fn write(&mut self, end: End, space: Space, offset: u64, data: &[u8]) {
        match space {
            _ if self.sides[end as usize].is_gone => {}
            Space::Bar(0) if self.sides[end as usize].stuck.contains(&offset) => {}
            Space::Config => self.sides[end as usize].config.write(offset as usize, data),
            Space::Bar(0) => self.write_register(end, offset, data),
            Space::Bar(bar) => self.write_window(end, usize::from(bar) / 2 - 1, offset, data),
        }
    }

    fn reset(&mut self, end: End) {
        self.sides[end as usize].reset();
        self.update_link();
    }

    fn set_power(&mut self, end: End, is_on: bool) {
        let side = &mut self.sides[end as usize];
        if !is_on {
            side.reset();
            side.host.clear();
        }
        side.is_powered = is_on;
        self.update_link();
    }

    fn set_cable(&mut self, is_plugged: bool) {
        self.is_plugged = is_plugged;
        self.update_link();
    }

    fn configure(&mut self, end: End, offset: usize, value: u64, len: usize) {
        self.sides[end as usize].config.set(offset, value, len);
    }

    fn set_gone(&mut self, end: End, is_gone: bool) {
        self.sides[end as usize].is_gone = is_gone;
    }

    fn set_stuck(&mut self, end: End, offset: u64) {
        self.sides[end as usize].stuck.push(offset);
    }

    fn counts(&self, end: End) -> Counts {
        self.sides[end as usize].counts
    }
}
