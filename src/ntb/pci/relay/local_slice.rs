//! Slices of this host that its agent writes for other hosts, since no neighbour can.

use super::record::{execute, Kind};
use crate::memory::SharedMemory;
use crate::slice::SliceBells;
use ntbring_memory::{InWindow, Mapping, OutWindow};
use std::sync::{Arc, Mutex, PoisonError};

/// A slice of a job of this host, until the job ends.
pub struct LocalSlice {
    window: Mutex<Option<OutWindow>>,
    bells: Arc<SliceBells>,
}

impl LocalSlice {
    /// Returns the slice with this memory, and with the doorbells that are rung after writes.
    pub fn new(memory: &SharedMemory, bells: Arc<SliceBells>) -> LocalSlice {
        let mapping = if memory.is_of_device() { Mapping::Uncached } else { Mapping::Coherent };
        LocalSlice { window: Mutex::new(Some(OutWindow::mapped(memory.region().clone(), mapping))), bells }
    }

    /// Lets no more write be carried out after this returns: the memory may be another job's then.
    pub fn close(&self) {
        *self.window.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Carries out a record. Returns false if it is none, or if it reaches beyond the slice.
    pub(super) fn execute(&self, kind: Kind, record: &InWindow, at: usize, len: usize) -> bool {
        let window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(window) = &*window else { return true };
        let is_valid = execute(kind, record, at, len, window);
        if is_valid && kind == Kind::Ring {
            self.bells.look();
        }
        is_valid
    }
}
