//! A function of a model as the drivers see it, within one process.

use crate::cable::{Cable, End};
use nix::sys::eventfd::{EfdFlags, EventFd};
use ntbring_memory::{Mapping, OutWindow, Region, WriteSink};
use ntbring_pci::memory::SharedMemory;
use ntbring_pci::{
    Alarm, Bar, Function, Identity, InterruptKind, Interrupts, PciAddress, PciError, Registers, Space, Width,
};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The function at one end of a cable, plugged into a host of this process.
pub struct Plugged {
    cable: Cable,
    end: End,
    address: PciAddress,
    /// The bus addresses of mapped memory, with the sizes.
    mapped: Mutex<Vec<(u64, u64)>>,
    alarm: Mutex<Option<Alarm>>,
    /// The vendor and device ids as they were last read from the function; 0 before. VFIO answers reads of them itself, also
    /// when the function is gone.
    ids: AtomicU64,
}

impl Plugged {
    /// Plugs the function at one end of a cable into a host, at a bus address, and gives its memory ranges addresses.
    pub fn new(cable: &Cable, end: End, address: PciAddress) -> Arc<Plugged> {
        let (mapped, alarm, ids) = (Mutex::default(), Mutex::default(), 0.into());
        let plugged = Plugged { cable: cable.clone(), end, address, mapped, alarm, ids };
        cable.lock().set_power(end, true);
        plugged.enable_memory();
        Arc::new(plugged)
    }

    /// Makes the kernel of this host announce something about the function.
    pub fn announce(&self, alarm: Alarm) {
        *self.alarm.lock().unwrap_or_else(PoisonError::into_inner) = Some(alarm);
    }

    /// Gives the memory ranges their addresses, and enables them.
    fn enable_memory(&self) {
        let bars = self.cable.lock().bars(self.end);
        for (index, size) in (0u8..).zip(bars).filter(|&(_, size)| size > 0) {
            // Different for the two ends, so that an address of the wrong host has no effect.
            let base = (1 + self.end as u64) << 40 | u64::from(index) << 36;
            assert_eq!(base % size, 0, "a base address is a multiple of the size");
            self.write(Space::Config, 0x10 + 4 * u64::from(index), Width::Qword, base);
        }
        self.command(1 << 1, true);
    }

    /// Sets or clears bits of the command register.
    fn command(&self, bits: u64, on: bool) {
        let command = self.read(Space::Config, 4, Width::Word);
        self.write(Space::Config, 4, Width::Word, if on { command | bits } else { command & !bits });
    }
}

impl Drop for Plugged {
    fn drop(&mut self) {
        self.cable.lock().set_power(self.end, false);
    }
}

impl Registers for Plugged {
    fn read(&self, space: Space, offset: u64, width: Width) -> u64 {
        let mut bytes = [0; 8];
        self.cable.read(self.end, space, offset, &mut bytes[..width.bytes()]);
        let value = u64::from_le_bytes(bytes);
        match (space, offset, width) {
            (Space::Config, 0, Width::Dword) if value == width.ones() => match self.ids.load(Ordering::Relaxed) {
                0 => value,
                ids => ids,
            },
            (Space::Config, 0, Width::Dword) => {
                self.ids.store(value, Ordering::Relaxed);
                value
            }
            _ => value,
        }
    }

    fn write(&self, space: Space, offset: u64, width: Width, value: u64) {
        self.cable.write(self.end, space, offset, &value.to_le_bytes()[..width.bytes()]);
    }
}

impl Function for Plugged {
    fn identity(&self) -> Identity {
        Identity::read(self, self.address)
    }

    fn bar(&self, index: u8) -> Option<Bar> {
        let size = self.cable.lock().bars(self.end).get(usize::from(index)).copied().filter(|&size| size > 0)?;
        let address = self.read(Space::Config, 0x10 + 4 * u64::from(index), Width::Qword) & !0xf;
        Some(Bar { index, address, size, is_64bit: true, is_prefetchable: true })
    }

    fn window(&self, bar: u8, offset: u64, len: u64) -> Result<OutWindow, PciError> {
        // The memory is never touched: the sink takes all writes.
        let place = OutWindow::mapped(Region::anonymous(len as usize), Mapping::WriteCombining);
        let sink = Posted { cable: self.cable.clone(), end: self.end, space: Space::Bar(bar), start: offset };
        Ok(place.with_sink(|_| Arc::new(sink)))
    }

    fn mapping(&self, _bar: u8) -> Mapping {
        Mapping::WriteCombining
    }

    fn window_file(&self, _bar: u8) -> Option<(BorrowedFd<'_>, u64)> {
        None
    }

    fn memory(&self, bar: u8, offset: u64, len: u64) -> Result<SharedMemory, PciError> {
        let mapped = match self.cable.lock().memory(bar) {
            Some(memory) => memory
                .file()
                .try_clone_to_owned()
                .and_then(|file| SharedMemory::of_device(file.into(), memory.offset() + offset, len)),
            None => Err(std::io::Error::other("there is no memory")),
        };
        let (identity, operation, help) = (self.identity(), "mapping its memory", String::new());
        mapped.map_err(|source| PciError::System { identity, operation, source, help })
    }

    fn map_registers(&self, _bar: u8, _offset: u64, _len: u64) -> Result<(), PciError> {
        Ok(())
    }

    fn reserve_addresses(&self, size: u64, align: u64, below: Option<u64>) -> Option<u64> {
        let address = 3 * align;
        (address + size <= below.unwrap_or(u64::MAX)).then_some(address)
    }

    fn map_memory(&self, memory: &Region, iova: u64) -> Result<(), PciError> {
        self.cable.lock().host(self.end).map(iova, memory.clone());
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner).push((iova, memory.len() as u64));
        Ok(())
    }

    fn unmap_memory(&self, iova: u64) -> Result<(), PciError> {
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = mapped.iter().position(|&(at, _)| at == iova) {
            let (_, size) = mapped.swap_remove(at);
            self.cable.lock().host(self.end).unmap(iova, size);
        }
        Ok(())
    }

    fn set_bus_master(&self, on: bool) {
        if on {
            self.enable_memory();
        }
        self.command(1 << 2, on);
    }

    fn interrupts(&self, wanted: usize, _least: usize) -> Result<Interrupts, PciError> {
        let system = |source: nix::Error| PciError::System {
            identity: self.identity(),
            operation: "creating an event descriptor",
            source: source.into(),
            help: String::new(),
        };
        let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC).map_err(system)?;
        let mut chip = self.cable.lock();
        for vector in 0..chip.vectors().min(wanted) {
            let theirs = event
                .as_fd()
                .try_clone_to_owned()
                .map_err(|error| system(error.try_into().unwrap_or(nix::Error::EMFILE)))?;
            chip.host(self.end).set_vector(vector, Some(theirs));
        }
        let kind = chip.interrupts();
        if kind == InterruptKind::Line {
            chip.host(self.end).unmask_line();
        }
        Ok(Interrupts { kind, event })
    }

    fn unmask_line(&self) {
        self.cable.lock().host(self.end).unmask_line();
    }

    fn alarm(&self) -> Option<Alarm> {
        self.alarm.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Writes through a memory range of a function.
struct Posted {
    cable: Cable,
    end: End,
    space: Space,
    start: u64,
}

impl WriteSink for Posted {
    fn write(&self, offset: usize, bytes: &[u8]) {
        // A write-combining buffer sends whole lines.
        let mut at = self.start + offset as u64;
        let mut bytes = bytes;
        while !bytes.is_empty() {
            let line = (64 - at as usize % 64).min(bytes.len());
            self.cable.write(self.end, self.space, at, &bytes[..line]);
            (at, bytes) = (at + line as u64, &bytes[line..]);
        }
    }

    fn store(&self, offset: usize, value: u64) {
        self.cable.write(self.end, self.space, self.start + offset as u64, &value.to_le_bytes());
    }

    fn fence(&self) {}
}
