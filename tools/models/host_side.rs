//! The memory and the interrupt vectors of the host in which a modelled function is.

use ntbring_memory::{OutWindow, Region};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

/// A range of bus addresses behind which memory lies.
struct Mapping {
    size: u64,
    memory: OutWindow,
    /// The same memory, for reads across the cable.
    region: Region,
}

/// The memory and the interrupt vectors that a function reaches in its host.
pub struct HostSide {
    mappings: BTreeMap<u64, Mapping>,
    vectors: Vec<Option<OwnedFd>>,
    /// Fault: number of writes that will be lost.
    losses: std::cell::Cell<u64>,
    line: Line,
}

/// The interrupt line, which signals the first vector.
#[derive(Default)]
struct Line {
    is_raised: bool,
    is_masked: bool,
}

impl HostSide {
    /// Creates a host without memory, in which `vectors` interrupt vectors are not connected.
    pub fn new(vectors: usize) -> HostSide {
        HostSide {
            mappings: BTreeMap::new(),
            vectors: (0..vectors).map(|_| None).collect(),
            losses: Default::default(),
            line: Line::default(),
        }
    }

    /// Puts memory behind the bus addresses from `address` on.
    pub fn map(&mut self, address: u64, region: Region) {
        let mapping = Mapping { size: region.len() as u64, memory: OutWindow::new(region.clone()), region };
        self.mappings.insert(address, mapping);
    }

    /// Removes all mappings that lie inside a range; returns their number.
    pub fn unmap(&mut self, address: u64, size: u64) -> usize {
        let before = self.mappings.len();
        let is_inside = |at: u64, mapping: &Mapping| at >= address && at - address + mapping.size <= size;
        self.mappings.retain(|&at, mapping| !is_inside(at, mapping));
        before - self.mappings.len()
    }

    /// Removes all memory and disconnects all vectors.
    pub fn clear(&mut self) {
        self.mappings.clear();
        self.vectors.iter_mut().for_each(|vector| *vector = None);
        self.line = Line::default();
    }

    /// Connects a vector to an event descriptor, or disconnects it.
    pub fn set_vector(&mut self, vector: usize, event: Option<OwnedFd>) {
        if let Some(place) = self.vectors.get_mut(vector) {
            *place = event;
        }
    }

    /// Returns the number of vectors that are connected.
    pub fn connected(&self) -> usize {
        self.vectors.iter().flatten().count()
    }

    /// Raises a vector. Returns false if it is not connected.
    pub fn interrupt(&self, vector: usize) -> bool {
        let event = self.vectors.get(vector).and_then(|event| event.as_ref());
        event.is_some_and(|event| nix::unistd::write(event, &1u64.to_ne_bytes()).is_ok())
    }

    /// Loses the next `count` writes that arrive here.
    pub fn lose(&mut self, count: u64) {
        self.losses.set(count);
    }

    /// Raises or lowers the interrupt line. Returns true if this interrupts the host.
    pub fn set_line(&mut self, is_raised: bool) -> bool {
        self.line.is_raised = is_raised;
        self.signal_line()
    }

    /// Unmasks the interrupt line, which each interrupt masks. Returns true if this interrupts the host at once.
    pub fn unmask_line(&mut self) -> bool {
        self.line.is_masked = false;
        self.signal_line()
    }

    fn signal_line(&mut self) -> bool {
        let has_signalled = self.line.is_raised && !self.line.is_masked && self.interrupt(0);
        self.line.is_masked |= has_signalled;
        has_signalled
    }

    /// Writes bytes at a bus address. Returns false if the write is lost: there is no memory, or a fault was ordered.
    pub fn write(&self, address: u64, bytes: &[u8]) -> bool {
        if let Some(rest) = self.losses.get().checked_sub(1) {
            self.losses.set(rest);
            return false;
        }
        let Some((mapping, offset)) = self.find(address, bytes.len()) else { return false };
        match <[u8; 8]>::try_from(bytes) {
            Ok(word) if offset % 8 == 0 => mapping.memory.store(offset, u64::from_le_bytes(word)),
            _ => mapping.memory.write_bytes(offset, bytes),
        }
        true
    }

    /// Reads bytes at a bus address. Returns false if there is no memory.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        let Some((mapping, offset)) = self.find(address, bytes.len()) else { return false };
        ntbring_memory::InWindow::new(mapping.region.clone()).read(offset, bytes);
        true
    }

    fn find(&self, address: u64, len: usize) -> Option<(&Mapping, usize)> {
        let (start, mapping) = self.mappings.range(..=address).next_back()?;
        let offset = address - start;
        (offset.checked_add(len as u64)? <= mapping.size).then_some((mapping, offset as usize))
    }
}
