//! The table of the names of functions in a part, by the addresses of these names.

use super::layout::{fact, FACTS_BYTES, NAMES, NAME_BYTES};
use std::collections::HashMap;
use std::ffi::{c_char, CStr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

/// A name in the table: its number, and a flag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// Number in the table.
    pub number: u16,
    /// True for functions that programs call in loops until something has happened: calls in a row are one event.
    pub polls: bool,
}

/// Functions that programs call in loops until something has happened, or that only tell the time.
const POLLS: [&str; 7] =
    ["MPI_Test", "MPI_Iprobe", "MPI_Improbe", "MPI_Request_get_status", "MPI_Parrived", "MPI_Win_test", "MPI_Wtime"];

/// The names that a process has recorded so far.
#[derive(Default)]
pub struct Names {
    known: Mutex<HashMap<usize, Name>>,
}

impl Names {
    /// Returns the name of a function, and enters it into the table in `header`. Names for which there is no room have
    /// the number of the last one that had.
    ///
    /// # Safety
    /// `function` must be a string that ends with a zero byte and never changes.
    pub unsafe fn find(&self, function: *const c_char, header: &[AtomicU64]) -> Name {
        let mut known = self.known.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(name) = known.get(&(function as usize)) {
            return *name;
        }
        // SAFETY: the caller guarantees such a string.
        let text = unsafe { CStr::from_ptr(function) }.to_string_lossy();
        // MPICH's functions have an inner function for several outer ones.
        let text = match text.strip_prefix("internal_").or_else(|| text.strip_prefix("internalX_")) {
            Some(rest) => format!("MPI_{rest}"),
            None => text.into_owned(),
        };
        let count = header[fact::NAMES].load(Ordering::Relaxed) as usize;
        let number = count.min(NAMES - 1);
        let mut bytes = [0; NAME_BYTES];
        let len = text.len().min(NAME_BYTES - 1);
        bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
        for (i, word) in bytes.chunks_exact(8).enumerate() {
            let word = u64::from_ne_bytes(word.try_into().unwrap_or_default());
            header[(FACTS_BYTES + number * NAME_BYTES) / 8 + i].store(word, Ordering::Relaxed);
        }
        header[fact::NAMES].store(number as u64 + 1, Ordering::Release);
        let name = Name { number: number as u16, polls: POLLS.iter().any(|start| text.starts_with(start)) };
        known.insert(function as usize, name);
        name
    }
}
