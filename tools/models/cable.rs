//! Two functions and the cable between them.

use crate::host_side::HostSide;
use ntbring_pci::memory::SharedMemory;
use ntbring_pci::{InterruptKind, Space};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One end of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The first function.
    A = 0,
    /// The second function.
    B = 1,
}

impl End {
    /// Both ends.
    pub const BOTH: [End; 2] = [End::A, End::B];

    /// Returns the other end.
    pub fn opposite(self) -> End {
        match self {
            End::A => End::B,
            End::B => End::A,
        }
    }
}

/// Counts of the accesses at one end of a cable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads of registers.
    pub reads: u64,
    /// Writes of registers.
    pub writes: u64,
    /// Writes to the window that have arrived in the memory of the other host, and their bytes.
    pub window_writes: u64,
    /// Bytes of these writes.
    pub window_bytes: u64,
    /// Reads across the cable.
    pub window_reads: u64,
    /// Writes to the window that were lost: the link was down, or the other end did not let them through.
    pub dropped: u64,
    /// Doorbells that were rung at the other end.
    pub doorbells: u64,
    /// Interrupts that were raised in this host.
    pub interrupts: u64,
    /// Accesses that the chip does not understand, such as one of the wrong width.
    pub misunderstood: u64,
}

/// The model of a family of chips: two functions joined by a cable.
pub trait Chip: Send {
    /// Returns the number of interrupt vectors of each function.
    fn vectors(&self) -> usize;
    /// Returns the kind of the interrupts.
    fn interrupts(&self) -> InterruptKind {
        InterruptKind::MsiX
    }
    /// Returns the sizes of the memory ranges 0 to 5 of a function; 0: there is none.
    fn bars(&self, end: End) -> [u64; 6];
    /// Returns the memory behind a memory range, if the hosts access it as memory.
    fn memory(&self, _bar: u8) -> Option<&SharedMemory> {
        None
    }
    /// Returns the host at one end.
    fn host(&mut self, end: End) -> &mut HostSide;
    /// Executes a read of the host at one end; the range lies inside the space.
    fn read(&mut self, end: End, space: Space, offset: u64, data: &mut [u8]);
    /// Executes a write of the host at one end; the range lies inside the space.
    fn write(&mut self, end: End, space: Space, offset: u64, data: &[u8]);
    /// Resets the function at one end.
    fn reset(&mut self, end: End);
    /// Powers the host at one end on or off.
    fn set_power(&mut self, end: End, is_on: bool);
    /// Plugs or pulls the cable.
    fn set_cable(&mut self, is_plugged: bool);
    /// Changes the configuration space of a function or its registers behind BAR 0, as a BIOS or a board does.
    fn configure(&mut self, end: End, space: Space, offset: u64, value: u64, len: usize);
    /// Lets a function vanish: reads return all ones and writes are lost; or lets it come back.
    fn set_gone(&mut self, end: End, is_gone: bool);
    /// Makes the register at `offset` of BAR 0 ignore all writes from now on.
    fn set_stuck(&mut self, end: End, offset: u64);
    /// Returns the counts at one end.
    fn counts(&self, end: End) -> Counts;
}

/// A cable with a function at each end, shared between the hosts.
#[derive(Clone)]
pub struct Cable(Arc<Mutex<Box<dyn Chip>>>);

impl Cable {
    /// Returns the cable between the two functions of a model.
    pub fn new(chip: impl Chip + 'static) -> Cable {
        Cable(Arc::new(Mutex::new(Box::new(chip))))
    }

    /// Gives access to the model.
    pub fn lock(&self) -> MutexGuard<'_, Box<dyn Chip>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Executes a read of the host at one end. Reads beyond the space return all ones.
    pub fn read(&self, end: End, space: Space, offset: u64, data: &mut [u8]) {
        let mut chip = self.lock();
        match fits(&**chip, end, space, offset, data.len()) {
            true => chip.read(end, space, offset, data),
            false => data.fill(0xff),
        }
    }

    /// Executes a write of the host at one end. Writes beyond the space are lost.
    pub fn write(&self, end: End, space: Space, offset: u64, data: &[u8]) {
        let mut chip = self.lock();
        if fits(&**chip, end, space, offset, data.len()) {
            chip.write(end, space, offset, data);
        }
    }
}

fn fits(chip: &dyn Chip, end: End, space: Space, offset: u64, len: usize) -> bool {
    let size = match space {
        Space::Config => crate::config_space::SIZE as u64,
        Space::Bar(index) => chip.bars(end).get(usize::from(index)).copied().unwrap_or(0),
    };
    offset.checked_add(len as u64).is_some_and(|behind| behind <= size)
}
