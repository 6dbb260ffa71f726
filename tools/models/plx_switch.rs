//! The registers of one PEX 87xx switch with an NTB, and its routing of writes from one interface to the other.

use crate::config_space::{number, ConfigSpace};

/// Size of the memory range 0, which holds the registers of the whole chip, bytes.
pub const BAR0_SIZE: u64 = 256 << 10;
const PAGE: u64 = 0x1000;

const VENDOR: u16 = 0x10b5;
const COMMAND: usize = 0x04;
const COMMAND_MEMORY: u64 = 1 << 1;
const COMMAND_BUS_MASTER: u64 = 1 << 2;
const COMMAND_NO_LINE: u64 = 1 << 10;
const BARS: u64 = 0x10;
const LINK_STATUS: usize = 0x7a;
const LINK_UP: u64 = 0x0083; // 8 lanes, gen3
const LINK_DOWN: u64 = 0x0001;
const BAR0_SETUP: u64 = 0xe4;
const BAR_SETUP: u64 = 0xe8;
const BAR_SETUP_END: u64 = 0xf8;
const TRANSLATION: u64 = 0xc3c;
const BELLS: u64 = 0xc4c;
const SCRATCHPAD: u64 = 0xc6c;
const IDENTITY: u64 = 0xc8c;
const READER: u64 = 0xc90;
const ALUT: u64 = 0xc94;
const ALUT_ON: u64 = 1 << 28;
const LUT_VIRTUAL: u64 = 0xd94;
const LUT_LINK: u64 = 0xdb4;
const LUT_END: u64 = 0xdf4;
const LINK_EVENTS: u64 = 0xfe0;
const LINK_EVENTS_MASK: u64 = 0xfe4;
const DL_DOWN: u32 = 1 << 2;

/// Requester id of the host's reads: device 2 of bus 0.
pub const READER_ID: u16 = 0x0010;

/// An interface of an NTB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// The function in the host of the switch.
    Virtual = 0,
    /// The function at the other end.
    Link = 1,
}

impl Interface {
    fn other(self) -> Interface {
        match self {
            Interface::Virtual => Interface::Link,
            Interface::Link => Interface::Virtual,
        }
    }
}

/// The settings of a switch that are fixed when it is powered on.
#[derive(Clone, Copy, Debug)]
pub struct Eeprom {
    /// Number of the chip.
    pub chip: u16,
    /// Number of the NTB, 0 or 1.
    pub nt: u8,
    /// Sizes of the memory ranges 2 and 4 of the functions, bytes; 0: there is none.
    pub ranges: [u64; 2],
    /// True if the Link interface has the ranges from the start; else it has none until a host sets them up.
    pub is_link_set_up: bool,
}

impl Eeprom {
    /// The first generation has this revision.
    fn revision(&self) -> u8 {
        if self.has_alut() {
            0xba
        } else {
            0xaa
        }
    }

    fn has_alut(&self) -> bool {
        matches!(self.chip, 0x8713 | 0x8717 | 0x8725 | 0x8733 | 0x8749)
    }

    /// Returns the number of the port that leads to the neighbour.
    fn port(&self) -> u64 {
        9 + 8 * u64::from(self.nt)
    }

    fn page(&self, interface: Interface) -> ConfigSpace {
        let is_virtual = interface == Interface::Virtual;
        let device = 0x87a0 | u16::from(self.nt) | if is_virtual { 0x10 } else { 0 };
        let (chip, revision) = (u64::from(self.chip), self.revision());
        let mut page = ConfigSpace::new(VENDOR, device, revision, &[]);
        page.set(0x06, 0x0010, 2); // there is a list of capabilities
        page.set(0x34, 0x40, 1);
        page.set(0x40, 0x0003_4801, 4); // power management
        page.set(0x48, 0x0080_6805, 4); // MSI
        page.set(0x68, 0x0002_0010, 4); // PCI Express
        page.set(LINK_STATUS, LINK_DOWN, 2);
        page.set(0x2e, chip, 2);
        page.set(0x3d, 1, 1); // interrupt pin
        page.set(0x100, 0xfb41_0003, 4); // serial number
        page.set(0xfb4, 0x9501_0001, 4); // errors
        page.set(0x950, 0x0001_000b, 4); // vendor-specific: number and revision
        page.set(0x954, 0x0100_0001, 4);
        page.set(0x958, chip << 16 | u64::from(VENDOR), 4);
        page.set(0x95c, revision.into(), 4);
        page.set(IDENTITY as usize, u64::from(self.nt) | if is_virtual { 0 } else { 1 << 31 }, 4);
        page.set(READER as usize, READER_ID.into(), 4);
        page.set(ALUT as usize, if self.has_alut() { ALUT_ON } else { 0 }, 4);
        if is_virtual || self.is_link_set_up {
            page.set(BAR0_SETUP as usize, 3, 4);
            page.set(0x10, 0x4, 4);
            for (range, size) in self.ranges.into_iter().enumerate().filter(|&(_, size)| size > 0) {
                page.set(BAR_SETUP as usize + 8 * range, !(size - 1) | 0xc, 8);
                page.set(0x18 + 8 * range, 0xc, 4);
            }
        }
        page
    }
}

/// The doorbells towards one host.
#[derive(Clone, Copy, Default)]
struct Bells {
    pending: u32,
    mask: u32,
}

/// One switch.
pub struct Switch {
    eeprom: Eeprom,
    pages: [ConfigSpace; 2],
    /// The doorbells towards the hosts of the two interfaces.
    bells: [Bells; 2],
    scratchpads: [u32; 8],
    events: u32,
    events_mask: u32,
    /// The ports of the station of the NTB that are disabled, a bit each.
    disabled: u32,
}

impl Switch {
    /// Creates a switch that has just been powered on.
    pub fn new(eeprom: Eeprom) -> Switch {
        Switch {
            eeprom,
            pages: [Interface::Virtual, Interface::Link].map(|interface| eeprom.page(interface)),
            bells: [Bells { pending: 0, mask: 0xffff }; 2],
            scratchpads: [0; 8],
            events: 0,
            events_mask: 0xf,
            disabled: 0,
        }
    }

    /// Resets the switch as power off and on do.
    pub fn reset(&mut self) {
        *self = Switch::new(self.eeprom);
    }

    /// Returns the sizes of the memory ranges 0 to 5 of a function, bytes.
    pub fn bars(&self) -> [u64; 6] {
        let [second, fourth] = self.eeprom.ranges;
        [BAR0_SIZE, 0, second, 0, fourth, 0]
    }

    /// Returns the configuration space of an interface, which is also its page of registers.
    pub fn page(&mut self, interface: Interface) -> &mut ConfigSpace {
        &mut self.pages[interface as usize]
    }

    /// Returns true if the port of the NTB is enabled.
    pub fn is_port_enabled(&self) -> bool {
        self.disabled >> (self.eeprom.port() & 7) & 1 == 0
    }

    /// Records that the link is up or down; a loss of the link resets the Link interface.
    pub fn set_link(&mut self, is_up: bool) {
        if !is_up {
            self.pages[Interface::Link as usize] = self.eeprom.page(Interface::Link);
            self.events |= DL_DOWN;
        }
        for page in &mut self.pages {
            page.set(LINK_STATUS, if is_up { LINK_UP } else { LINK_DOWN }, 2);
        }
    }

    /// Returns true if the interrupt line of an interface is raised.
    pub fn is_raised(&self, interface: Interface) -> bool {
        let bells = self.bells[interface as usize];
        let has_event = interface == Interface::Virtual && self.events & !self.events_mask != 0;
        (bells.pending & !bells.mask != 0 || has_event) && self.command(interface) & COMMAND_NO_LINE == 0
    }

    /// Returns true if an interface answers accesses to its memory ranges.
    pub fn has_memory(&self, interface: Interface) -> bool {
        self.command(interface) & COMMAND_MEMORY != 0 && self.base(interface, 0) != 0
    }

    fn command(&self, interface: Interface) -> u64 {
        self.pages[interface as usize].get(COMMAND, 2)
    }

    fn base(&self, interface: Interface, bar: u8) -> u64 {
        self.pages[interface as usize].bar(bar)
    }

    /// Returns the bits of a base address register that can be written; 0: it is off.
    fn mask(&self, interface: Interface, bar: u8) -> u64 {
        let page = &self.pages[interface as usize];
        match bar {
            0 if page.get(BAR0_SETUP as usize, 4) == 3 => !(BAR0_SIZE - 1),
            2 | 4 => page.get(BAR_SETUP as usize + 4 * usize::from(bar - 2), 8) & !0xf_ffff,
            _ => 0,
        }
    }

    /// Returns the base address register of an interface that an address hits, and the offset in its range.
    pub fn find(&self, interface: Interface, address: u64) -> Option<(u8, u64)> {
        let offset = |bar| {
            let (mask, base) = (self.mask(interface, bar), self.base(interface, bar));
            (mask != 0 && base != 0 && address & mask == base & mask).then_some((bar, address & !mask))
        };
        [0, 2, 4].into_iter().find_map(offset).filter(|_| self.has_memory(interface))
    }

    /// Passes a write through the NTB that enters at an interface: returns its address and its requester id at the
    /// other end. None if it is dropped.
    pub fn pass(&self, interface: Interface, bar: u8, offset: u64, requester: u16) -> Option<(u64, u16)> {
        let other = interface.other();
        let (mask, page) = (self.mask(interface, bar), &self.pages[interface as usize]);
        // The table of translations is not modelled: no write passes while it is on.
        let is_open = mask != 0
            && self.has_memory(interface)
            && self.command(other) & COMMAND_BUS_MASTER != 0
            && self.pages[other as usize].get(ALUT as usize, 4) & ALUT_ON == 0;
        let translation = page.get(TRANSLATION as usize + 4 * usize::from(bar - 2), 8);
        let entry = self.entry(interface, requester)?;
        is_open.then_some((translation & mask | offset & !mask, entry << 3))
    }

    /// Returns the number of the entry that lets a requester pass an interface.
    fn entry(&self, interface: Interface, requester: u16) -> Option<u16> {
        let (lut, entries) = match interface {
            Interface::Virtual => (LUT_VIRTUAL, 16),
            Interface::Link => (LUT_LINK, 32),
        };
        let page = &self.pages[interface as usize];
        let has = |entry: u64| entry & 1 == 1 && entry & 0xfff8 == u64::from(requester & 0xfff8);
        (0..entries).find(|&entry| has(page.get(lut as usize + 2 * usize::from(entry), 2)))
    }

    /// Returns the interface in whose page an offset of the memory range 0 lies, and the register there.
    fn place(&self, offset: u64) -> Option<(Interface, u64)> {
        let first = 0x3e000 - 2 * PAGE * u64::from(self.eeprom.nt);
        match offset.checked_sub(first).map(|offset| (offset / PAGE, offset % PAGE)) {
            Some((0, register)) => Some((Interface::Virtual, register)),
            Some((1, register)) => Some((Interface::Link, register)),
            _ => None,
        }
    }

    fn station(&self) -> u64 {
        (self.eeprom.port() & !7) << 12 | 0x208
    }

    /// Reads a register of the memory range 0; None if the chip has no such register.
    pub fn read(&self, offset: u64) -> Option<u32> {
        if offset == 0x360 {
            let straps = self.eeprom.port() << (8 + 8 * self.eeprom.nt);
            return Some(straps as u32 | if self.eeprom.has_alut() { 3 << 30 } else { 0 });
        } else if offset == self.station() {
            return Some(self.disabled);
        }
        let (interface, register) = self.place(offset)?;
        let is_virtual = interface == Interface::Virtual;
        match register {
            BELLS..SCRATCHPAD => {
                let bells = self.bells[(register >= BELLS + 16) as usize];
                Some(if (register - BELLS) % 16 < 8 { bells.pending } else { bells.mask })
            }
            SCRATCHPAD..IDENTITY => Some(self.scratchpads[(register - SCRATCHPAD) as usize / 4]),
            LINK_EVENTS if is_virtual => Some(self.events),
            LINK_EVENTS_MASK if is_virtual => Some(self.events_mask),
            ..0x100 | TRANSLATION..BELLS | IDENTITY | READER | ALUT | LUT_VIRTUAL..LUT_END => {
                Some(self.pages[interface as usize].get(register as usize, 4) as u32)
            }
            _ => None,
        }
    }

    /// Writes a register of the memory range 0. Returns false if the chip has no such register, or if it cannot be
    /// written.
    pub fn write(&mut self, offset: u64, value: u32) -> bool {
        if offset == self.station() {
            self.disabled = value;
            return true;
        }
        self.place(offset).is_some_and(|(interface, register)| self.write_page(interface, register, value))
    }

    /// Returns true if a write at this offset of the memory range 0 rings a doorbell.
    pub fn is_bell(&self, offset: u64) -> bool {
        self.place(offset).is_some_and(|(_, register)| register == BELLS || register == BELLS + 16)
    }

    /// Executes a write of a function's host to its configuration space.
    pub fn configure(&mut self, interface: Interface, offset: u64, data: &[u8]) {
        match data.len() {
            8 => data.chunks(4).zip([offset, offset + 4]).for_each(|(half, at)| self.configure(interface, at, half)),
            4 => {
                self.write_page(interface, offset, number(data) as u32);
            }
            _ => self.pages[interface as usize].write(offset as usize, data),
        }
    }

    fn write_page(&mut self, interface: Interface, register: u64, value: u32) -> bool {
        let (is_virtual, at) = (interface == Interface::Virtual, register as usize);
        match register {
            0x04 | 0x3c => self.page(interface).write(at, &value.to_le_bytes()),
            BARS..0x28 => self.write_bar(interface, at, value),
            BAR0_SETUP..BAR_SETUP_END if !is_virtual && !self.eeprom.is_link_set_up => {
                self.page(interface).set(at, value.into(), 4);
                // The registers have no bits that the new size does not have.
                for at in (0x10..0x28).step_by(4) {
                    let old = self.page(interface).get(at, 4);
                    self.write_bar(interface, at, old as u32);
                }
            }
            BELLS..SCRATCHPAD => {
                let bells = &mut self.bells[(register >= BELLS + 16) as usize];
                match (register - BELLS) % 16 {
                    0 => bells.pending |= value & 0xffff,
                    4 => bells.pending &= !value,
                    8 => bells.mask |= value & 0xffff,
                    _ => bells.mask &= !value,
                }
            }
            SCRATCHPAD..IDENTITY => self.scratchpads[(register - SCRATCHPAD) as usize / 4] = value,
            LINK_EVENTS if is_virtual => self.events &= !value,
            LINK_EVENTS_MASK if is_virtual => self.events_mask = value & 0xf,
            ALUT if !self.eeprom.has_alut() => return false,
            TRANSLATION..BELLS | ALUT => self.page(interface).set(at, value.into(), 4),
            LUT_VIRTUAL..LUT_LINK if is_virtual => self.page(interface).set(at, value.into(), 4),
            LUT_LINK..LUT_END if !is_virtual => self.page(interface).set(at, value.into(), 4),
            _ => return false,
        }
        true
    }

    /// Writes a half of a 64-bit base address register.
    fn write_bar(&mut self, interface: Interface, at: usize, value: u32) {
        let bar = (at - 0x10) as u8 / 8 * 2;
        let mask = self.mask(interface, bar);
        let kind = match (mask, bar) {
            (0, _) => 0,
            (_, 0) => 0x4,
            _ => 0xc,
        };
        let half = match at % 8 {
            0 => u64::from(value) & mask & 0xffff_ffff | kind,
            _ => u64::from(value) & mask >> 32,
        };
        self.page(interface).set(at, half, 4);
    }
}
