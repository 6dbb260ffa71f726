//! The slices of an adapter's window, and access to those of the neighbour's window.

use super::state::{Adapter, State};
use crate::allotment::{Range, PAGE};
use crate::chip::Aperture;
use crate::control::CONTROL;
use crate::error::PciError;
use crate::ledger::{Ledger, Writes, SLOTS};
use crate::memory::SharedMemory;
use ntbring_memory::OutWindow;
use ntbring_ntb::NtbError;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest time that a job waits for an earlier one to give up its slices.
const CONFIRMATION: Duration = Duration::from_secs(5);

impl Adapter {
    /// Returns the number of bytes of the window that no job has.
    pub fn free(&self) -> u64 {
        self.state().ledger.free()
    }

    /// Gives the job with this key, of this user, a slice of at least `len` bytes of the window, whose memory is zero.
    /// Returns its place and its memory. Never waits.
    pub fn add_slice(&self, key: u64, user: u32, len: u64) -> Result<(Range, Arc<SharedMemory>), NtbError> {
        // Memory is allocated only for what there is room for: the length may be any number.
        let Some(len) = len.checked_next_multiple_of(PAGE).filter(|&len| self.has_room(len)) else {
            return Err(self.no_room(len, &self.state().ledger));
        };
        let (function, place) = (self.chip().function(), self.limits.memory);
        if let Some(Aperture { bar, offset, .. }) = place {
            return self.add(key, user, len, |range| {
                let memory = function.memory(bar, offset + range.offset, range.len)?;
                memory.clear();
                Ok(Arc::new(memory))
            });
        }
        let memory = SharedMemory::allocate(len);
        let memory = memory.map_err(|error| failure(format!("{len} bytes of memory for a window: {error}")))?;
        let memory = Arc::new(memory);
        Ok((self.add_memory(key, user, memory.clone())?, memory))
    }

    /// As [`Adapter::add_slice`], but if there is no room, it waits for at most 5 s: while `is_one_ending` says that a job
    /// is about to close its slices, and for the neighbour to confirm slices that are closed. The thread that serves the
    /// adapter must not call it.
    pub fn wait_for_slice(
        &self,
        key: u64,
        user: u32,
        len: u64,
        is_one_ending: &dyn Fn() -> bool,
    ) -> Result<(Range, Arc<SharedMemory>), NtbError> {
        let start = Instant::now();
        loop {
            // Asked first: what ends in between leaves room.
            let may_help = is_one_ending() || self.state().ledger.is_closing();
            let added = self.add_slice(key, user, len);
            if added.is_ok() || !may_help || start.elapsed() > CONFIRMATION {
                return added;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// As [`Adapter::add_slice`], with memory that may also be behind other windows. Fails if it or the window is memory of
    /// a device.
    pub fn add_memory(&self, key: u64, user: u32, memory: Arc<SharedMemory>) -> Result<Range, NtbError> {
        if self.has_own_memory() || memory.is_of_device() {
            return Err(failure(format!("port {}: memory of a device cannot be behind two windows", self.port)));
        }
        let map = |range: Range| {
            self.chip().function().map_memory(memory.region(), self.iova + range.offset)?;
            Ok(memory.clone())
        };
        self.add(key, user, memory.region().len() as u64, map).map(|(range, _)| range)
    }

    /// Takes `len` bytes of the window, puts memory behind them, and gives them to a job.
    pub(super) fn add(
        &self,
        key: u64,
        user: u32,
        len: u64,
        map: impl FnOnce(Range) -> Result<Arc<SharedMemory>, PciError>,
    ) -> Result<(Range, Arc<SharedMemory>), NtbError> {
        let mut state = self.state();
        self.sweep(&mut state);
        let range = state.ledger.take(len).ok_or_else(|| self.no_room(len, &state.ledger))?;
        let memory = match map(range) {
            Ok(memory) => memory,
            Err(error) => {
                state.ledger.give_back(range);
                return Err(failure(format!("memory of a window: {error}")));
            }
        };
        state.ledger.add(key, user, range, memory.clone());
        self.publish(&mut state);
        Ok((range, memory))
    }

    /// Returns true if there is room for a slice now.
    fn has_room(&self, len: u64) -> bool {
        let mut state = self.state();
        self.sweep(&mut state);
        state.ledger.has_room(len)
    }

    fn no_room(&self, len: u64, ledger: &Ledger) -> NtbError {
        failure(format!(
            "a job needs {len} bytes of the window of port {}, of which {} are free, and at most {SLOTS} jobs may use it \
             at once ({}): set NTBRING_WINDOW to less, wait until another job has ended, or give the adapter a larger \
             window",
            self.port,
            ledger.free(),
            ledger.holders()
        ))
    }

    /// Closes the slice of a job that has ended. It is given to another job when the neighbour's processes cannot write
    /// it any more.
    pub fn close_slice(&self, key: u64) {
        let mut state = self.state();
        state.ledger.close(key);
        self.publish(&mut state);
        self.sweep(&mut state);
    }

    /// Lets a process of this host, of this user, write the slice of the neighbour's window with this key. Returns None
    /// if the link is down or if the neighbour has not published such a slice (yet).
    pub fn use_slice(self: &Arc<Self>, key: u64, user: u32) -> Option<SliceUse> {
        let mut state = self.state();
        let size = state.peer?.bytes.min(self.limits.aperture.size);
        let granted = state.ledger.granted(&self.page, key).filter(|granted| granted.user == user)?;
        let Range { offset, len } = granted.range;
        if len == 0 || offset < CONTROL || offset.checked_add(len).is_none_or(|end| end > size) {
            log::warn!("port {}: the neighbour publishes {len} bytes at {offset}: not in its window", self.port);
            return None;
        }
        state.ledger.begin(key);
        Some(SliceUse { adapter: self.clone(), key, range: granted.range })
    }

    /// Writes all entries on slices into the neighbour's window, if the link is up.
    pub(crate) fn publish(&self, state: &mut State) {
        let (Some(peer), Some(bringing)) = (state.peer, &state.setup) else { return };
        let writes = state.ledger.publish(peer.host);
        write(&bringing.page, &writes);
    }

    /// Confirms slices of the neighbour that are not used any more, and frees those that it has confirmed.
    pub(crate) fn sweep(&self, state: &mut State) {
        if let (Some(_), Some(bringing)) = (state.peer, &state.setup) {
            write(&bringing.page, &state.ledger.confirmations(&self.page));
        }
        let freed = state.ledger.sweep(&self.page);
        for (range, _memory) in &freed {
            let pieces = state.pieces.remove(&range.offset).unwrap_or_default();
            [range.offset].into_iter().chain(pieces).for_each(|offset| self.unmap(offset));
        }
        if !freed.is_empty() {
            self.publish(state);
        }
    }
}

pub(super) fn failure(problem: String) -> NtbError {
    NtbError::Device { device: "pci".into(), problem }
}

/// Writes words into the first page of the neighbour's window.
fn write(page: &OutWindow, writes: &Writes) {
    writes.iter().for_each(|&(offset, word)| page.store(offset, word));
    page.fence();
}

/// The right of a process of this host to write a slice of the neighbour's window, until this is dropped.
pub struct SliceUse {
    /// The adapter.
    pub adapter: Arc<Adapter>,
    key: u64,
    /// The place of the slice in the neighbour's window.
    pub range: Range,
}

impl SliceUse {
    /// Maps `len` bytes at `offset` of the slice.
    pub fn map(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError> {
        let size = self.range.len;
        if offset.checked_add(len).is_none_or(|end| end > size) {
            return Err(NtbError::Aperture { offset, len, size });
        }
        let mapped = self.adapter.aim(self.range.offset + offset, len);
        mapped.map_err(|error| failure(error.to_string()))
    }

    /// Rings the doorbell of the neighbour's chip that announces words of the slice.
    pub fn ring(&self) {
        self.adapter.ring(self.doorbell());
    }

    /// Returns the doorbell of the neighbour's chip that announces words of the slice.
    pub fn doorbell(&self) -> usize {
        // The neighbour may claim to have more than this chip can ring.
        let doorbells = self.adapter.peer().map_or(1, |peer| peer.doorbells.into());
        doorbell_of(self.range, self.adapter.limits.doorbells.min(doorbells))
    }
}

impl Drop for SliceUse {
    fn drop(&mut self) {
        let mut state = self.adapter.state();
        state.ledger.end(self.key);
        self.adapter.sweep(&mut state);
    }
}

/// Returns the doorbell of the chip that announces words of a slice of its window, for a chip with this number of
/// doorbells.
pub fn doorbell_of(slice: Range, doorbells: usize) -> usize {
    (slice.offset / PAGE) as usize % doorbells.max(1)
}
