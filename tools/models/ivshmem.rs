//! ivshmem (1AF4:1110, revision 1): two machines that share memory, and the server that joins them.
//!
//! The cable of the model stands for the server and the neighbour's machine: if it is pulled, nothing that a machine does
//! reaches the other, as if that had ended. Deviations: BAR 0 is larger, has 64 bits, and holds the table of vectors,
//! which QEMU has in BAR 1.

use crate::cable::{Chip, Counts, End};
use crate::config_space::{number, BarMask, Capabilities, ConfigSpace};
use crate::host_side::HostSide;
use crate::side::Side;
use ntbring_pci::memory::SharedMemory;
use ntbring_pci::Space;

const CAPABILITIES: Capabilities = Capabilities { vectors: 2, msix: 0x40, table: 0x1000, express: 0x60, power: 0x50 };
const REGISTERS: u64 = 0x4000;
/// Class: RAM.
const CLASS: u64 = 0x0500_0000;
const REVISION: u64 = 1;

const IV_POSITION: u64 = 8;
const DOORBELL: u64 = 12;

/// Two machines that share memory.
pub struct Ivshmem {
    sides: [Side; 2],
    memory: SharedMemory,
    is_plugged: bool,
    /// The id that the server gives to the next machine that starts.
    next_id: u64,
}

impl Ivshmem {
    /// Least window, bytes: with it the memory is as large as a driver needs.
    pub const WINDOW_MIN: u64 = 256 << 10;

    /// Returns the size of a memory that has windows of `window` bytes, a power of two: two windows, and the words beside
    /// them.
    pub fn memory_for(window: u64) -> u64 {
        4 * window.max(Self::WINDOW_MIN)
    }

    /// Creates two machines that share `size` bytes, a power of two. Panics if there is no memory.
    pub fn new(size: u64) -> Ivshmem {
        assert!(size.is_power_of_two(), "a memory of {size} bytes");
        let bars = [(0, REGISTERS), (2, size)].map(|(index, size)| BarMask { index, size });
        let sides = End::BOTH.map(|_| {
            let mut config = ConfigSpace::new(0x1af4, 0x1110, 1, &bars);
            config.set(0x08, CLASS | REVISION, 4);
            config.add(&CAPABILITIES);
            Side::new(config, REGISTERS, CAPABILITIES.vectors)
        });
        let memory = SharedMemory::in_small_pages(size).expect("memory");
        Ivshmem { sides, memory, is_plugged: true, next_id: 0 }
    }

    fn side(&mut self, end: End) -> &mut Side {
        &mut self.sides[end as usize]
    }

    fn is_understood(&mut self, end: End, offset: u64, len: usize) -> bool {
        let is_understood = len == 4 && (0..=DOORBELL).step_by(4).any(|register| register == offset);
        self.side(end).counts.misunderstood += u64::from(!is_understood);
        is_understood
    }

    fn write_register(&mut self, end: End, offset: u64, data: &[u8]) {
        self.side(end).counts.writes += 1;
        if !self.is_understood(end, offset, data.len()) {
            return;
        }
        match offset {
            IV_POSITION => {}
            DOORBELL => self.interrupt(end, number(data)),
            _ => self.side(end).set(offset, number(data), 4),
        }
    }

    /// Interrupts the peer whose id is in the upper half of a value, by the vector in the lower half.
    fn interrupt(&mut self, from: End, value: u64) {
        let is_plugged = self.is_plugged;
        let to = self.side(from.opposite());
        if to.is_powered && is_plugged && to.get(IV_POSITION, 4) == value >> 16 {
            to.counts.interrupts += u64::from(to.host.interrupt(value as usize & 0xffff));
            self.side(from).counts.doorbells += 1;
        }
    }

    fn write_memory(&mut self, end: End, offset: u64, data: &[u8]) {
        let has_arrived = self.is_plugged && self.side(end.opposite()).host.write(offset, data);
        let counts = &mut self.side(end).counts;
        if has_arrived {
            counts.window_writes += 1;
            counts.window_bytes += data.len() as u64;
        } else {
            counts.dropped += 1;
        }
    }
}

impl Chip for Ivshmem {
    fn vectors(&self) -> usize {
        CAPABILITIES.vectors
    }

    fn bars(&self, _end: End) -> [u64; 6] {
        [REGISTERS, 0, self.memory.region().len() as u64, 0, 0, 0]
    }

    fn memory(&self, bar: u8) -> Option<&SharedMemory> {
        (bar == 2).then_some(&self.memory)
    }

    fn host(&mut self, end: End) -> &mut HostSide {
        &mut self.side(end).host
    }

    fn read(&mut self, end: End, space: Space, offset: u64, data: &mut [u8]) {
        if self.side(end).is_gone {
            return data.fill(0xff);
        }
        match space {
            Space::Config => self.side(end).config.read(offset as usize, data),
            Space::Bar(0) => {
                self.side(end).counts.reads += 1;
                let is_understood = self.is_understood(end, offset, data.len());
                let value = if is_understood { self.side(end).get(offset, 4) } else { 0 };
                let len = data.len();
                data.copy_from_slice(&value.to_le_bytes()[..len]);
            }
            // Drivers map the memory that they read.
            Space::Bar(_) => {
                self.side(end).counts.window_reads += 1;
                data.fill(0xff);
            }
        }
    }

    fn write(&mut self, end: End, space: Space, offset: u64, data: &[u8]) {
        if self.side(end).is_gone || space == Space::Bar(0) && self.side(end).stuck.contains(&offset) {
            return;
        }
        match space {
            Space::Config => self.side(end).config.write(offset as usize, data),
            Space::Bar(0) => self.write_register(end, offset, data),
            Space::Bar(_) => self.write_memory(end, offset, data),
        }
    }

    fn reset(&mut self, end: End) {
        let side = self.side(end);
        let id = side.get(IV_POSITION, 4);
        side.clear();
        side.set(IV_POSITION, id, 4);
    }

    /// A machine that starts again has a new id; the memory stays.
    fn set_power(&mut self, end: End, is_on: bool) {
        let (id, memory) = (self.next_id, self.memory.region().clone());
        let side = self.side(end);
        side.clear();
        side.host.clear();
        side.is_powered = is_on;
        if is_on {
            side.host.map(0, memory);
            side.set(IV_POSITION, id, 4);
            self.next_id += 1;
        }
    }

    fn set_cable(&mut self, is_plugged: bool) {
        self.is_plugged = is_plugged;
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
