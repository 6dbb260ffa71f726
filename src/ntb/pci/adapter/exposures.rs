//! Memory of processes behind the window: the neighbour's processes write it directly.

use super::slices::failure;
use super::state::Adapter;
use crate::allotment::{Range, PAGE};
use crate::memory::SharedMemory;
use ntbring_memory::Region;
use ntbring_ntb::fabric::Exposure;
use ntbring_ntb::NtbError;
use std::fmt::Display;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

/// A process's memory takes at most one part in so many of what there is for such memory: others have processes, too.
const SHARE: u64 = 4;

/// Bytes that are put behind the window at a time, while the adapter does nothing else.
const PIECE: u64 = 16 << 20;

/// Memory of a process that the neighbour can write, until this is dropped.
pub struct ExposedMemory {
    adapter: Arc<Adapter>,
    key: u64,
    range: Range,
    memory: Region,
    /// Number of bytes that the neighbour reaches.
    backed: Mutex<u64>,
}

impl Adapter {
    /// Takes a range of the window for at most `size` bytes at `offset` of a process's file, the offset a multiple of a page,
    /// and puts those of the first `backed` bytes behind it for which there is room. None if there is none, or if the memory
    /// cannot be behind a window; the log says why.
    pub fn expose(
        self: &Arc<Self>,
        (key, user): (u64, u32),
        (file, offset): (OwnedFd, u64),
        size: u64,
        backed: u64,
    ) -> Option<ExposedMemory> {
        let pages = |bytes: u64| bytes.checked_next_multiple_of(PAGE).unwrap_or(0);
        let (spare, is_taken) = {
            let ledger = &self.state().ledger;
            (ledger.spare(), ledger.has(key))
        };
        let len = (spare / SHARE / PAGE * PAGE).min(pages(size));
        let wanted = pages(backed).min(len);
        let backed = wanted.min(PIECE);
        if self.has_own_memory() || is_taken || backed == 0 || offset % PAGE != 0 {
            return None;
        }
        let refused = |error: &dyn Display| {
            log::info!("port {}: memory of a process is not behind the window: {error}", self.port);
        };
        let memory = SharedMemory::of_process(File::from(file), offset, len).map_err(|error| refused(&error)).ok()?;
        let (region, memory) = (memory.region().clone(), Arc::new(memory));
        let map = |range: Range| {
            let first = region.part(0, backed as usize);
            self.chip().function().map_memory(&first, self.iova + range.offset)?;
            Ok(memory)
        };
        let (range, _) = self.add(key, user, len, map).map_err(|error| refused(&error)).ok()?;
        log::debug!("port {}: {len} bytes of a process, of which {wanted} exist, are behind the window", self.port);
        let exposed = ExposedMemory { adapter: self.clone(), key, range, memory: region, backed: Mutex::new(backed) };
        exposed.grow(wanted).map_err(|error| refused(&error)).ok()?;
        Some(exposed)
    }
}

impl Exposure for ExposedMemory {
    /// Puts memory behind the range that the process has backed since: up to `backed` bytes from the start, as far as there
    /// is room.
    fn grow(&self, backed: u64) -> Result<(), NtbError> {
        let mut before = self.backed.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = backed.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        let after = pages.min(self.memory.len() as u64);
        while *before < after {
            let (offset, len) = (self.range.offset + *before, PIECE.min(after - *before));
            let piece = self.memory.part(*before as usize, len as usize);
            let mut state = self.adapter.state();
            let mapped = self.adapter.chip().function().map_memory(&piece, self.adapter.iova + offset);
            mapped.map_err(|error| failure(error.to_string()))?;
            state.pieces.entry(self.range.offset).or_default().push(offset);
            *before += len;
        }
        Ok(())
    }
}

impl Drop for ExposedMemory {
    fn drop(&mut self) {
        self.adapter.close_slice(self.key);
    }
}
