//! PLX/Broadcom PEX 87xx: two switches whose Link interfaces are cabled, or one switch between two hosts.
//!
//! Known only by other drivers of the chip: the reset values, that a Link interface answers accesses to registers of
//! any requester, and that only the loss of the link, not its return, is an event.

use crate::cable::{Chip, Counts, End};
use crate::config_space::number;
use crate::host_side::HostSide;
use crate::plx_switch::{Eeprom, Interface, Switch};
use ntbring_pci::{InterruptKind, Space};

/// Smallest memory range of a window, bytes.
pub const RANGE_MIN: u64 = 1 << 20;

/// A host and its function.
struct Side {
    host: HostSide,
    is_powered: bool,
    /// Fault: the function has vanished.
    is_gone: bool,
    /// Fault: registers that ignore writes.
    stuck: Vec<u64>,
    counts: Counts,
}

/// The end of a write that passes all switches.
enum Arrival {
    /// An address of the other host.
    Memory(u64),
    /// A register of the other switch.
    Register(u64),
}

/// Two functions of PEX 87xx switches.
pub struct Plx87 {
    /// Back to back one of each host; else that of the first host.
    switches: Vec<Switch>,
    sides: [Side; 2],
    is_plugged: bool,
    is_up: bool,
    /// Requester id of the processors' writes.
    writer: u16,
    /// True if the IOMMUs know only device 0 behind a switch.
    has_strict_iommu: bool,
}

impl Plx87 {
    /// Creates two switches, back to back, with NTBs of this number and memory ranges 2 and 4 of these sizes, bytes: a
    /// power of two from [`RANGE_MIN`] on, or 0.
    pub fn back_to_back(chip: u16, nt: u8, ranges: [u64; 2]) -> Plx87 {
        Plx87::new(vec![Eeprom { chip, nt, ranges, is_link_set_up: false }; 2])
    }

    /// Creates a switch in the first host; the second one enumerates its Link interface.
    pub fn root_port(chip: u16, nt: u8, ranges: [u64; 2]) -> Plx87 {
        Plx87::new(vec![Eeprom { chip, nt, ranges, is_link_set_up: true }])
    }

    fn new(switches: Vec<Eeprom>) -> Plx87 {
        let side = |_| Side {
            host: HostSide::new(1),
            is_powered: false,
            is_gone: false,
            stuck: Vec::new(),
            counts: Counts::default(),
        };
        Plx87 {
            switches: switches.into_iter().map(Switch::new).collect(),
            sides: End::BOTH.map(side),
            is_plugged: true,
            is_up: false,
            writer: 0,
            has_strict_iommu: false,
        }
    }

    /// Gives writes of the processors this requester id, and the hosts IOMMUs that know only device 0 behind a switch.
    pub fn with_strict_iommu(mut self, writer: u16) -> Plx87 {
        (self.writer, self.has_strict_iommu) = (writer, true);
        self
    }

    fn is_back_to_back(&self) -> bool {
        self.switches.len() == 2
    }

    /// Returns the switch and the interface that the function at an end is.
    fn place(&self, end: End) -> (usize, Interface) {
        match (self.is_back_to_back(), end) {
            (true, _) => (end as usize, Interface::Virtual),
            (false, End::A) => (0, Interface::Virtual),
            (false, End::B) => (0, Interface::Link),
        }
    }

    /// Returns true if the function answers. The Link interface does so only while there is a link.
    fn is_present(&self, end: End) -> bool {
        let side = &self.sides[end as usize];
        side.is_powered && !side.is_gone && (self.is_up || self.place(end).1 == Interface::Virtual)
    }

    fn has_memory(&self, end: End) -> bool {
        let (switch, interface) = self.place(end);
        self.is_present(end) && self.switches[switch].has_memory(interface)
    }

    /// Updates the link and the interrupt lines after a change.
    fn update(&mut self) {
        let is_up = self.is_plugged
            && self.sides.iter().all(|side| side.is_powered)
            && self.switches.iter().all(Switch::is_port_enabled);
        if std::mem::replace(&mut self.is_up, is_up) != is_up {
            self.switches.iter_mut().for_each(|switch| switch.set_link(is_up));
        }
        for end in End::BOTH {
            let (switch, interface) = self.place(end);
            let is_raised = self.is_present(end) && self.switches[switch].is_raised(interface);
            let side = &mut self.sides[end as usize];
            if side.host.set_line(is_raised) {
                side.counts.interrupts += 1;
            }
        }
    }

    /// Returns the end of a write to a memory range of a function; None if it is dropped.
    fn route(&self, end: End, bar: u8, offset: u64) -> Option<Arrival> {
        let (switch, interface) = self.place(end);
        let passed = self.switches[switch].pass(interface, bar, offset, self.writer).filter(|_| self.is_up)?;
        let (address, requester) = match self.is_back_to_back() {
            false => passed,
            true => {
                let (address, requester) = passed;
                let peer = &self.switches[1 - switch];
                match peer.find(Interface::Link, address)? {
                    (0, offset) => return Some(Arrival::Register(offset)),
                    (bar, offset) => peer.pass(Interface::Link, bar, offset, requester)?,
                }
            }
        };
        (requester == 0 || !self.has_strict_iommu).then_some(Arrival::Memory(address))
    }

    fn write_range(&mut self, end: End, bar: u8, offset: u64, data: &[u8]) {
        let [mine, peer] = [end, end.opposite()].map(|end| end as usize);
        match self.route(end, bar, offset) {
            Some(Arrival::Memory(address)) if self.sides[peer].host.write(address, data) => {
                self.sides[mine].counts.window_writes += 1;
                self.sides[mine].counts.window_bytes += data.len() as u64;
            }
            Some(Arrival::Register(offset)) => self.write_register(end, peer, offset, data),
            _ => self.sides[mine].counts.dropped += 1,
        }
    }

    /// Executes a write of the host at an end to a register of a switch.
    fn write_register(&mut self, end: End, switch: usize, offset: u64, data: &[u8]) {
        let counts = &mut self.sides[end as usize].counts;
        counts.writes += 1;
        let is_whole = data.len() == 4 && offset.is_multiple_of(4);
        if is_whole && self.switches[switch].write(offset, number(data) as u32) {
            counts.doorbells += u64::from(self.switches[switch].is_bell(offset));
            self.update();
        } else {
            log::info!("{end:?}: a write of {} bytes at {offset:#x}, which no register takes", data.len());
            counts.misunderstood += 1;
        }
    }

    fn read_register(&mut self, end: End, offset: u64, data: &mut [u8]) {
        let (switch, _) = self.place(end);
        let counts = &mut self.sides[end as usize].counts;
        counts.reads += 1;
        let value = self.switches[switch].read(offset).filter(|_| data.len() == 4 && offset.is_multiple_of(4));
        match value {
            Some(value) => data.copy_from_slice(&value.to_le_bytes()),
            None => {
                log::info!("{end:?}: a read of {} bytes at {offset:#x}, where there is no such register", data.len());
                counts.misunderstood += 1;
                data.fill(0);
            }
        }
    }
}

impl Chip for Plx87 {
    fn vectors(&self) -> usize {
        1
    }

    fn interrupts(&self) -> InterruptKind {
        InterruptKind::Line
    }

    fn bars(&self, end: End) -> [u64; 6] {
        self.switches[self.place(end).0].bars()
    }

    fn host(&mut self, end: End) -> &mut HostSide {
        &mut self.sides[end as usize].host
    }

    fn read(&mut self, end: End, space: Space, offset: u64, data: &mut [u8]) {
        let (switch, interface) = self.place(end);
        match space {
            Space::Config if self.is_present(end) => {
                self.switches[switch].page(interface).read(offset as usize, data);
            }
            Space::Bar(0) if self.has_memory(end) => self.read_register(end, offset, data),
            Space::Config | Space::Bar(0) => data.fill(0xff),
            Space::Bar(_) => {
                self.sides[end as usize].counts.window_reads += 1;
                data.fill(0xff);
            }
        }
    }

    fn write(&mut self, end: End, space: Space, offset: u64, data: &[u8]) {
        let (switch, interface) = self.place(end);
        match space {
            Space::Config if self.is_present(end) => {
                self.switches[switch].configure(interface, offset, data);
                self.update();
            }
            Space::Bar(0) if self.sides[end as usize].stuck.contains(&offset) => {}
            Space::Bar(0) if self.has_memory(end) => self.write_register(end, switch, offset, data),
            Space::Bar(bar @ 2..) if self.has_memory(end) => self.write_range(end, bar, offset, data),
            _ => {}
        }
    }

    fn reset(&mut self, end: End) {
        let (switch, interface) = self.place(end);
        self.switches[switch].page(interface).reset();
        self.update();
    }

    fn set_power(&mut self, end: End, is_on: bool) {
        self.sides[end as usize].is_powered = is_on;
        if !is_on {
            self.sides[end as usize].host.clear();
        }
        self.update();
        if let (false, (switch, Interface::Virtual)) = (is_on, self.place(end)) {
            self.switches[switch].reset();
        }
    }

    fn set_cable(&mut self, is_plugged: bool) {
        self.is_plugged = is_plugged;
        self.update();
    }

    fn configure(&mut self, end: End, space: Space, offset: u64, value: u64, len: usize) {
        let (switch, interface) = self.place(end);
        match space {
            Space::Config => self.switches[switch].page(interface).set(offset as usize, value, len),
            Space::Bar(_) => {
                self.switches[switch].write(offset, value as u32);
            }
        }
        self.update();
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
