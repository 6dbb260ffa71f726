//! One function of a model, as a vfio-user device.

use crate::guest_memory::GuestMemory;
use ntbring_models::{Cable, End};
use ntbring_pci::{InterruptKind, Space};
use std::fs::File;
use std::io;
use std::mem::size_of;
use std::path::{Path, PathBuf};
use vfio_bindings::bindings::vfio;
use vfio_user::{DmaMapFlags, DmaUnmapFlags, IrqInfo, Server, ServerBackend, ServerRegion};

/// Number of regions and of kinds of interrupts that QEMU expects.
const REGIONS: u32 = 9;
const INTERRUPTS: u32 = 5;
const CONFIG_SIZE: u64 = 4096;

/// A function, and the memory of the virtual machine in which it is.
pub struct Served {
    cable: Cable,
    end: End,
    socket: PathBuf,
    memory: GuestMemory,
}

impl Served {
    pub fn new(cable: Cable, end: End, socket: &Path) -> Served {
        Served { cable, end, socket: socket.to_path_buf(), memory: GuestMemory::default() }
    }

    /// Creates the socket; one that an earlier server has left is replaced.
    pub fn listen(&self) -> Result<Server, vfio_user::Error> {
        let _ = std::fs::remove_file(&self.socket);
        let bars = self.cable.lock().bars(self.end);
        let size = |index: u32| match index {
            vfio::VFIO_PCI_CONFIG_REGION_INDEX => CONFIG_SIZE,
            _ => bars.get(index as usize).copied().unwrap_or(0),
        };
        let vectors = self.cable.lock().vectors() as u32;
        let kind = self.cable.lock().interrupts();
        let line = vfio::VFIO_IRQ_INFO_EVENTFD | vfio::VFIO_IRQ_INFO_MASKABLE | vfio::VFIO_IRQ_INFO_AUTOMASKED;
        let interrupts = (0..INTERRUPTS).map(|index| match index {
            vfio::VFIO_PCI_INTX_IRQ_INDEX if kind == InterruptKind::Line => IrqInfo { index, flags: line, count: 1 },
            vfio::VFIO_PCI_MSIX_IRQ_INDEX if kind == InterruptKind::MsiX => {
                IrqInfo { index, flags: vfio::VFIO_IRQ_INFO_EVENTFD, count: vectors }
            }
            _ => IrqInfo { index, flags: 0, count: 0 },
        });
        let regions = (0..REGIONS).map(|index| region(index, size(index))).collect();
        Server::new(&self.socket, true, interrupts.collect(), regions)
    }

    /// Serves one virtual machine after the other.
    pub fn serve(mut self, server: Server) {
        let name = format!("{} ({:?})", self.socket.display(), self.end);
        loop {
            // The crate does not say when a client comes, so the function is there from the start.
            self.cable.lock().set_power(self.end, true);
            let ended = server.run(&mut self);
            log::info!("{name}: the virtual machine is gone ({ended:?}); {:?}", self.cable.lock().counts(self.end));
            self.cable.lock().set_power(self.end, false);
            self.memory.clear();
        }
    }
}

fn region(index: u32, size: u64) -> ServerRegion {
    let flags = if size == 0 { 0 } else { vfio::VFIO_REGION_INFO_FLAG_READ | vfio::VFIO_REGION_INFO_FLAG_WRITE };
    let argsz = size_of::<vfio::vfio_region_info>() as u32;
    let region_info = vfio::vfio_region_info { argsz, flags, index, size, ..Default::default() };
    ServerRegion { region_info, sparse_areas: vec![], mmap_fd: None }
}

fn space(region: u32) -> Option<Space> {
    match region {
        vfio::VFIO_PCI_CONFIG_REGION_INDEX => Some(Space::Config),
        0..=5 => Some(Space::Bar(region as u8)),
        _ => None,
    }
}

impl ServerBackend for Served {
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> io::Result<()> {
        match space(region) {
            Some(space) => self.cable.read(self.end, space, offset, data),
            None => data.fill(0xff),
        }
        Ok(())
    }

    /// Never fails: a store of a virtual machine is posted, and the crate would answer it with an error all the same.
    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> io::Result<()> {
        if let Some(space) = space(region) {
            self.cable.write(self.end, space, offset, data);
        }
        Ok(())
    }

    fn dma_map(
        &mut self,
        flags: DmaMapFlags,
        offset: u64,
        address: u64,
        size: u64,
        file: Option<File>,
    ) -> io::Result<()> {
        let Some(file) = file else {
            if flags.contains(DmaMapFlags::WRITE) {
                log::error!(
                    "{:?}: {size} bytes of the virtual machine's memory at {address:#x} cannot be reached: its memory \
                     must be shared (memory-backend-memfd,share=on)",
                    self.end
                );
            }
            return Ok(());
        };
        if !flags.contains(DmaMapFlags::WRITE) {
            return Ok(());
        }
        let region = self.memory.part(&file, offset, size)?;
        self.cable.lock().host(self.end).map(address, region);
        Ok(())
    }

    /// Removes what lies inside the range: it may be as large as the whole address space.
    fn dma_unmap(&mut self, flags: DmaUnmapFlags, address: u64, size: u64) -> io::Result<()> {
        let (address, size) = if flags.contains(DmaUnmapFlags::UNMAP_ALL) { (0, u64::MAX) } else { (address, size) };
        self.cable.lock().host(self.end).unmap(address, size);
        Ok(())
    }

    fn reset(&mut self) -> io::Result<()> {
        self.cable.lock().reset(self.end);
        Ok(())
    }

    fn set_irqs(&mut self, index: u32, flags: u32, start: u32, count: u32, events: Vec<File>) -> io::Result<()> {
        let mut chip = self.cable.lock();
        let (is_line, kind) = (index == vfio::VFIO_PCI_INTX_IRQ_INDEX, chip.interrupts());
        if is_line && flags & vfio::VFIO_IRQ_SET_ACTION_UNMASK != 0 {
            chip.host(self.end).unmask_line();
        }
        let is_used = if is_line { kind == InterruptKind::Line } else { index == vfio::VFIO_PCI_MSIX_IRQ_INDEX };
        if !is_used || flags & vfio::VFIO_IRQ_SET_ACTION_TRIGGER == 0 {
            return Ok(());
        }
        let vectors = chip.vectors();
        if flags & vfio::VFIO_IRQ_SET_DATA_EVENTFD != 0 {
            let mut events = events.into_iter();
            for vector in start..start.saturating_add(count).min(vectors as u32) {
                chip.host(self.end).set_vector(vector as usize, events.next().map(Into::into));
            }
        } else if count == 0 {
            (0..vectors).for_each(|vector| chip.host(self.end).set_vector(vector, None));
        }
        if is_line {
            chip.host(self.end).unmask_line();
        }
        Ok(())
    }
}
