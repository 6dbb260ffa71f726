//! The writing end of a lane of records: an outgoing window for a process that cannot map it.

use super::record::{Kind, LocalLane, OFFSET};
use crate::memory;
use crate::slice::Grant;
use nix::sys::eventfd::{EfdFlags, EventFd};
use ntbring_memory::{InWindow, OutWindow, Region, WriteSink};
use ntbring_ntb::software::{Bank, Registers};
use ntbring_ntb::{LinkState, NtbError};
use ntbring_queue::Producer;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{fence, AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The memory of a lane of records, and the event descriptor that wakes the agent.
pub struct RecordLane {
    /// The memory.
    pub memory: memory::SharedMemory,
    /// The event descriptor.
    pub event: EventFd,
}

impl RecordLane {
    /// Allocates a lane.
    pub fn allocate() -> io::Result<RecordLane> {
        let memory = memory::SharedMemory::allocate(LocalLane::SIZE)?;
        Ok(RecordLane { memory, event: EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)? })
    }

    /// Returns the size of the memory of a lane, bytes.
    pub fn size() -> u64 {
        LocalLane::SIZE
    }
}

/// Time without room in a lane after which the user is told. The wait ends when the link goes down.
const LONG: Duration = Duration::from_secs(10);

/// The writing end of a lane of records. It may be used by several threads.
pub struct RecordWriter {
    lane: LocalLane,
    producer: Mutex<Producer>,
    event: OwnedFd,
    /// The registers that tell if the link is up: while it is down, writes are lost.
    registers: Registers,
    bank: Bank,
    /// True if writes are lost for which there is no room.
    is_lossy: AtomicBool,
}

impl RecordWriter {
    /// Returns the writing end of the lane in `memory`; `event` wakes the agent. None if the memory is too small.
    pub fn new(memory: Region, event: OwnedFd, registers: Registers, bank: Bank) -> Option<Arc<RecordWriter>> {
        let lane = LocalLane::new(memory)?;
        let producer = Producer::new(OutWindow::new(lane.lane()), InWindow::new(lane.credit()));
        let (producer, is_lossy) = (Mutex::new(producer), false.into());
        Some(Arc::new(RecordWriter { lane, producer, event, registers, bank, is_lossy }))
    }

    fn push(&self, kind: Kind, offset: Option<usize>, bytes: &[u8]) {
        let mut producer = self.producer.lock().unwrap_or_else(PoisonError::into_inner);
        let len = bytes.len() + offset.map_or(0, |_| OFFSET);
        let mut is_reported = false;
        let start = Instant::now();
        for round in 0u32.. {
            if let Some(mut slot) = producer.reserve(len) {
                if let Some(offset) = offset {
                    slot.write_bytes(0, &(offset as u64).to_le_bytes());
                    slot.write_bytes(OFFSET, bytes);
                }
                slot.commit(kind as u8, len, 0);
                break;
            }
            if self.is_lossy.load(Ordering::Relaxed) || self.registers.link(self.bank) == LinkState::Down {
                // As at a link that is down: the write is lost.
                return;
            }
            if !is_reported && start.elapsed() > LONG {
                log::warn!("the agents take no writes for {LONG:?}: a host on the way is stopped or very slow");
                is_reported = true;
            }
            match round {
                0..50 => std::hint::spin_loop(),
                50..100 => std::thread::yield_now(),
                _ => std::thread::sleep(Duration::from_micros(100)),
            }
        }
        // The agent sets the word and then looks at the lane again; one of the two sees the other.
        fence(Ordering::SeqCst);
        if self.lane.asleep().load(Ordering::Relaxed) != 0 {
            // It fails only if the count is at its maximum, and then the agent wakes anyway.
            let _ = nix::unistd::write(&self.event, &1u64.to_ne_bytes());
        }
    }

    fn write(&self, offset: usize, bytes: &[u8]) {
        let most = self.producer.lock().unwrap_or_else(PoisonError::into_inner).entry_max() - OFFSET;
        let starts = (offset..).step_by(most);
        bytes.chunks(most).zip(starts).for_each(|(chunk, offset)| self.push(Kind::Write, Some(offset), chunk));
    }
}

/// Access to a neighbour's slice through the agent.
pub struct RelayedGrant {
    writer: Arc<RecordWriter>,
    /// Size of the slice, bytes.
    len: u64,
}

impl RelayedGrant {
    /// Returns access to a slice of `len` bytes.
    pub fn new(writer: Arc<RecordWriter>, len: u64) -> RelayedGrant {
        RelayedGrant { writer, len }
    }
}

impl Grant for RelayedGrant {
    fn map(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError> {
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(NtbError::Aperture { offset, len, size: self.len });
        }
        // The memory is never touched: the sink takes all writes.
        let place = OutWindow::new(Region::anonymous(len as usize));
        let sink = Part { writer: self.writer.clone(), start: offset as usize };
        Ok(place.with_sink(|_| Arc::new(sink)))
    }

    fn ring(&self) {
        self.writer.push(Kind::Ring, None, &[]);
    }

    fn lose_rather_than_wait(&self) {
        self.writer.is_lossy.store(true, Ordering::Relaxed);
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.writer.event.as_fd()]
    }
}

/// A part of the slice.
struct Part {
    writer: Arc<RecordWriter>,
    start: usize,
}

impl WriteSink for Part {
    fn write(&self, offset: usize, bytes: &[u8]) {
        self.writer.write(self.start + offset, bytes);
    }

    fn store(&self, offset: usize, value: u64) {
        self.writer.push(Kind::Store, Some(self.start + offset), &value.to_le_bytes());
    }

    fn fence(&self) {
        self.writer.push(Kind::Fence, None, &[]);
    }
}
