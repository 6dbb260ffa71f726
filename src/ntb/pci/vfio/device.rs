//! One function that is bound to vfio-pci.

use super::calls::{self, Call};
use super::combining;
use super::container::Container;
use super::interrupts;
use crate::error::PciError;
use crate::function::{Alarm, Bar, Function, Interrupts};
use crate::identity::Identity;
use crate::memory::{self, SharedMemory};
use crate::registers::{Registers, Space, Width};
use crate::sysfs::SysFunction;
use memmap2::{MmapOptions, MmapRaw};
use nix::sys::eventfd::{EfdFlags, EventFd};
use ntbring_memory::{Mapping, OutWindow, Region};
use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};
use vfio_bindings::bindings::vfio;

const BARS: usize = 6;
const COMMAND: u64 = 4;
const COMMAND_MEMORY: u64 = 1 << 1;
const COMMAND_BUS_MASTER: u64 = 1 << 2;

/// Smallest memory range for a window that is worth a warning, bytes.
const WINDOW_MIN: u64 = 1 << 20;

/// Bit of a base address register that says that the range is prefetchable, and the bits of its width.
const BAR_PREFETCHABLE: u64 = 1 << 3;
const BAR_TYPE: u64 = 0b110;
const BAR_64BIT: u64 = 0b100;

/// A range of the device's descriptor.
#[derive(Clone, Copy, Default)]
struct VfioRegion {
    size: u64,
    offset: u64,
    can_map: bool,
}

/// One function that is bound to vfio-pci.
pub struct VfioFunction {
    container: Arc<Container>,
    identity: Identity,
    device: File,
    config: VfioRegion,
    regions: [VfioRegion; BARS],
    bars: [Option<Bar>; BARS],
    /// The mapping of BAR 0, which holds the registers of all chips that have a driver.
    registers: Option<MmapRaw>,
    /// Registers behind another memory range, with its number and their offset in it.
    more_registers: OnceLock<(u8, u64, MmapRaw)>,
    /// The function in /sys.
    system: SysFunction,
    /// Files of /sys that map the memory ranges write-combining.
    combining: [Option<File>; BARS],
    /// Event descriptors of what the kernel announces, as far as it does.
    alarms: Vec<(Alarm, EventFd)>,
}

impl VfioFunction {
    pub(super) fn new(
        container: Arc<Container>,
        function: &SysFunction,
        identity: Identity,
        device: OwnedFd,
    ) -> Result<VfioFunction, PciError> {
        let fail = |operation| move |source| PciError::System { identity, operation, source, help: String::new() };
        let region = |index| region(&device, index).map_err(fail("asking for its memory ranges"));
        let config = region(vfio::VFIO_PCI_CONFIG_REGION_INDEX)?;
        let mut regions = [VfioRegion::default(); BARS];
        for (index, place) in (0..).zip(&mut regions) {
            *place = region(index)?;
        }
        let device = File::from(device);
        let alarms = interrupts::alarms(device.as_fd(), identity);
        let registers = match regions[0] {
            VfioRegion { can_map: true, size, offset } => {
                let map = MmapOptions::new().offset(offset).len(size as usize).map_raw(&device);
                Some(map.map_err(fail("mapping its registers"))?)
            }
            _ => None,
        };
        let bars = [None; BARS];
        let combining = [const { None }; BARS];
        let (more_registers, system) = (OnceLock::new(), function.clone());
        let this = VfioFunction {
            container,
            identity,
            device,
            config,
            regions,
            bars,
            registers,
            more_registers,
            system,
            combining,
            alarms,
        };
        let mut this = this.with_bars(&function.resources());
        this.enable_memory();
        for bar in this.bars.into_iter().flatten().filter(|bar| bar.index != 0 && bar.size >= WINDOW_MIN) {
            if !bar.is_prefetchable {
                log::warn!(
                    "{identity}: memory range {} is not prefetchable, so the kernel maps it only uncached, which is many times \
                     slower: the BIOS, or the EEPROM of a PEX 87xx, can make it a prefetchable one",
                    bar.index
                );
                continue;
            }
            match combining::file(function, bar) {
                Ok(file) => this.combining[usize::from(bar.index)] = Some(file),
                Err(error) => log::warn!(
                    "{identity}: memory range {} is mapped uncached, which is many times slower: \
                     {}: {error}{}",
                    bar.index,
                    combining::path(function, bar).display(),
                    combining::remedy(&error)
                ),
            }
        }
        Ok(this)
    }

    /// Adds the memory ranges, whose addresses are taken from /sys.
    fn with_bars(mut self, resources: &[(u64, u64, u64); BARS]) -> VfioFunction {
        let mut index = 0;
        while index < BARS {
            let register = self.read(Space::Config, 0x10 + 4 * index as u64, Width::Dword);
            let is_64bit = register & BAR_TYPE == BAR_64BIT;
            let (address, size) = (resources[index].0, self.regions[index].size);
            if size > 0 && register & 1 == 0 {
                let is_prefetchable = register & BAR_PREFETCHABLE != 0;
                self.bars[index] = Some(Bar { index: index as u8, address, size, is_64bit, is_prefetchable });
            }
            index += if is_64bit { 2 } else { 1 };
        }
        self
    }

    fn enable_memory(&self) {
        let command = self.read(Space::Config, COMMAND, Width::Word);
        self.write(Space::Config, COMMAND, Width::Word, command | COMMAND_MEMORY);
    }

    /// Returns the address of a register in a mapping; None if the access has to go through the descriptor.
    fn mapped(&self, space: Space, offset: u64, width: Width) -> Option<*mut u8> {
        let (map, offset) = match (space, self.more_registers.get()) {
            (Space::Bar(0), _) => (self.registers.as_ref()?, offset),
            (Space::Bar(bar), Some((of, start, map))) if bar == *of => (map, offset.checked_sub(*start)?),
            _ => return None,
        };
        let is_inside = offset % width.bytes() as u64 == 0 && offset + width.bytes() as u64 <= map.len() as u64;
        is_inside.then(|| map.as_mut_ptr().wrapping_add(offset as usize))
    }

    /// Returns the position of a register in the descriptor; None if it does not exist.
    fn position(&self, space: Space, offset: u64, width: Width) -> Option<u64> {
        let region = match space {
            Space::Config => self.config,
            Space::Bar(index) => *self.regions.get(usize::from(index))?,
        };
        (offset.checked_add(width.bytes() as u64)? <= region.size).then_some(region.offset + offset)
    }

    fn error(&self, operation: &'static str, source: io::Error, help: String) -> PciError {
        PciError::System { identity: self.identity, operation, source, help }
    }
}

fn region(device: &OwnedFd, index: u32) -> io::Result<VfioRegion> {
    let argsz = size_of::<vfio::vfio_region_info>() as u32;
    let mut info = vfio::vfio_region_info { argsz, index, ..Default::default() };
    // SAFETY: it is the structure of this call.
    unsafe { calls::with_struct(device.as_fd(), Call::DeviceGetRegionInfo, &mut info) }?;
    Ok(VfioRegion { size: info.size, offset: info.offset, can_map: info.flags & vfio::VFIO_REGION_INFO_FLAG_MMAP != 0 })
}

impl Registers for VfioFunction {
    fn read(&self, space: Space, offset: u64, width: Width) -> u64 {
        if let Some(at) = self.mapped(space, offset, width) {
            // SAFETY: the register lies inside the mapping, at a multiple of its width.
            return unsafe {
                match width {
                    Width::Byte => at.read_volatile().into(),
                    Width::Word => at.cast::<u16>().read_volatile().into(),
                    Width::Dword => at.cast::<u32>().read_volatile().into(),
                    Width::Qword => at.cast::<u64>().read_volatile(),
                }
            };
        }
        let mut bytes = [0; 8];
        let position = self.position(space, offset, width);
        match position.map(|position| self.device.read_exact_at(&mut bytes[..width.bytes()], position)) {
            Some(Ok(())) => u64::from_le_bytes(bytes),
            _ => width.ones(),
        }
    }

    fn write(&self, space: Space, offset: u64, width: Width, value: u64) {
        if let Some(at) = self.mapped(space, offset, width) {
            // SAFETY: as in `read`.
            return unsafe {
                match width {
                    Width::Byte => at.write_volatile(value as u8),
                    Width::Word => at.cast::<u16>().write_volatile(value as u16),
                    Width::Dword => at.cast::<u32>().write_volatile(value as u32),
                    Width::Qword => at.cast::<u64>().write_volatile(value),
                }
            };
        }
        if let Some(position) = self.position(space, offset, width) {
            // A write that fails is lost, as on the bus.
            let _ = self.device.write_all_at(&value.to_le_bytes()[..width.bytes()], position);
        }
    }
}

impl Function for VfioFunction {
    fn identity(&self) -> Identity {
        self.identity
    }

    fn bar(&self, index: u8) -> Option<Bar> {
        self.bars.get(usize::from(index)).copied().flatten()
    }

    fn window(&self, bar: u8, offset: u64, len: u64) -> Result<OutWindow, PciError> {
        let region = self.regions.get(usize::from(bar)).copied().unwrap_or_default();
        let fail = |source| self.error("mapping its window", source, String::new());
        if offset.checked_add(len).is_none_or(|end| end > region.size) {
            return Err(fail(io::ErrorKind::InvalidInput.into()));
        }
        let (file, start) = match self.combining.get(usize::from(bar)) {
            Some(Some(file)) => (file, 0),
            _ if region.can_map => (&self.device, region.offset),
            _ => return Err(fail(io::Error::other("vfio-pci cannot map it"))),
        };
        Ok(OutWindow::mapped(memory::map(file, start + offset, len).map_err(fail)?, self.mapping(bar)))
    }

    fn mapping(&self, bar: u8) -> Mapping {
        match self.combining.get(usize::from(bar)) {
            Some(Some(_)) => Mapping::WriteCombining,
            _ => Mapping::Uncached,
        }
    }

    fn window_file(&self, bar: u8) -> Option<(BorrowedFd<'_>, u64)> {
        let region = self.regions.get(usize::from(bar)).filter(|region| region.can_map)?;
        match self.combining.get(usize::from(bar)) {
            Some(Some(file)) => Some((file.as_fd(), 0)),
            _ => Some((self.device.as_fd(), region.offset)),
        }
    }

    /// Maps the file of /sys, uncached: the processor may execute loads from write-combining memory out of order. vfio-pci
    /// would claim the whole range as uncached, the window in it as well.
    fn memory(&self, bar: u8, offset: u64, len: u64) -> Result<SharedMemory, PciError> {
        let region = self.regions.get(usize::from(bar)).copied().unwrap_or_default();
        let fail = |source| self.error("mapping its memory", source, String::new());
        if offset.checked_add(len).is_none_or(|end| end > region.size) {
            return Err(fail(io::ErrorKind::InvalidInput.into()));
        }
        let file = File::options().read(true).write(true).open(self.system.file(&format!("resource{bar}")));
        match file.and_then(|file| SharedMemory::of_device(file, offset, len)) {
            Ok(memory) => Ok(memory),
            Err(error) if region.can_map => {
                log::debug!("{}: memory range {bar} is mapped through vfio-pci: {error}", self.identity);
                let device = self.device.try_clone().map_err(fail)?;
                SharedMemory::of_device(device, region.offset + offset, len).map_err(fail)
            }
            Err(error) => Err(fail(error)),
        }
    }

    /// Maps the file of /sys: vfio-pci would claim the whole range as uncached.
    fn map_registers(&self, bar: u8, offset: u64, len: u64) -> Result<(), PciError> {
        let file = File::options().read(true).write(true).open(self.system.file(&format!("resource{bar}")));
        let map = file.and_then(|file| MmapOptions::new().offset(offset).len(len as usize).map_raw(&file));
        match map {
            Ok(map) => drop(self.more_registers.set((bar, offset, map))),
            Err(error) => log::warn!(
                "{}: registers in memory range {bar} cannot be mapped ({error}) and are accessed through vfio-pci, so \
                 that windows in the same range may be uncached",
                self.identity
            ),
        }
        Ok(())
    }

    fn reserve_addresses(&self, size: u64, align: u64, below: Option<u64>) -> Option<u64> {
        self.container.reserve_addresses(size, align, below)
    }

    fn map_memory(&self, memory: &Region, iova: u64) -> Result<(), PciError> {
        self.container.map(memory, iova).map_err(|source| {
            let help = match source.raw_os_error() {
                Some(libc::ENOMEM) => format!(
                    "; the kernel must lock {} bytes of memory for it: raise `ulimit -l`, or LimitMEMLOCK of the systemd unit",
                    memory.len()
                ),
                _ => String::new(),
            };
            self.error("mapping memory for it", source, help)
        })
    }

    fn unmap_memory(&self, iova: u64) -> Result<(), PciError> {
        self.container.unmap(iova).map_err(|source| self.error("unmapping its memory", source, String::new()))
    }

    fn set_bus_master(&self, on: bool) {
        let command = self.read(Space::Config, COMMAND, Width::Word) & !COMMAND_BUS_MASTER;
        let on = if on { COMMAND_MEMORY | COMMAND_BUS_MASTER } else { 0 };
        self.write(Space::Config, COMMAND, Width::Word, command | on);
    }

    fn interrupts(&self, wanted: usize, least: usize) -> Result<Interrupts, PciError> {
        let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
        let event = event.map_err(|error| self.error("creating an event descriptor", error.into(), String::new()))?;
        let kind = interrupts::enable(self.device.as_fd(), event.as_fd(), wanted, least);
        let kind = kind.map_err(|source| self.error("enabling its interrupts", source, String::new()))?;
        Ok(Interrupts { kind, event })
    }

    fn alarm(&self) -> Option<Alarm> {
        self.alarms.iter().find(|(_, event)| event.read().is_ok()).map(|(alarm, _)| *alarm)
    }

    fn unmask_line(&self) {
        let flags = vfio::VFIO_IRQ_SET_DATA_NONE | vfio::VFIO_IRQ_SET_ACTION_UNMASK;
        if let Err(error) = interrupts::set(self.device.as_fd(), vfio::VFIO_PCI_INTX_IRQ_INDEX, flags, 1, &[]) {
            log::warn!("{}: unmasking its interrupt: {error}", self.identity);
        }
    }
}
