//! The table of the names of functions in a part, by the addresses of these names.

use super::layout::{fact, FACTS_BYTES, NAMES, NAME_BYTES};
use std::collections::HashMap;
use std::ffi::{c_char, CStr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

/// A name in the table: its number, and what is recorded of the function's calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Name {
    /// Number in the table.
    pub number: u16,
    /// True for functions that programs call in loops until something has happened: calls in a row are one event.
    pub polls: bool,
    /// True for functions that are called rarely compared to messages: see [`super::Calls::Coarse`].
    pub coarse: bool,
}

/// Functions that programs call in loops until something has happened, or that only tell the time.
const POLLS: [&str; 7] =
    ["MPI_Test", "MPI_Iprobe", "MPI_Improbe", "MPI_Request_get_status", "MPI_Parrived", "MPI_Win_test", "MPI_Wtime"];

/// Beginnings of the names of functions that are coarse, after `MPI_`, with spaces between them: collectives, functions
/// that synchronise windows, files, and communicators that come and go.
const COARSE: &str = "\
    Abort Allgather Allreduce Alltoall Barrier Bcast Cart_create Cart_sub Comm_accept Comm_connect Comm_create \
    Comm_disconnect Comm_dup Comm_free Comm_idup Comm_spawn Comm_split Dist_graph_create Exscan File_ Gather \
    Graph_create Intercomm_ Neighbor_ Reduce Scan Scatter Win_allocate Win_complete Win_create Win_fence Win_flush \
    Win_free Win_lock Win_post Win_start Win_sync Win_unlock Win_wait";

/// Returns true if a function of this name is coarse.
fn is_coarse(name: &str) -> bool {
    let name = name.trim_start_matches("MPI_").trim_start_matches("MPIX_");
    // Nonblocking collectives have the names of blocking ones after an I.
    let mut blocking = name.strip_prefix('I').unwrap_or_default().to_string();
    blocking.get_mut(..1).into_iter().for_each(str::make_ascii_uppercase);
    let is = |start: &str| name.starts_with(start) || blocking.starts_with(start);
    name != "Reduce_local" && COARSE.split(' ').any(is)
}

/// The names that a process has recorded so far.
#[derive(Default)]
pub struct Names {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    by_address: HashMap<usize, Name>,
    by_text: HashMap<String, Name>,
}

impl Names {
    /// Returns the name of a function, and enters it into the table in `header`.
    ///
    /// # Safety
    /// `function` must be a string that ends with a zero byte and never changes.
    pub unsafe fn find(&self, function: *const c_char, header: &[AtomicU64]) -> Name {
        let mut known = self.known.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(name) = known.by_address.get(&(function as usize)) {
            return *name;
        }
        // SAFETY: the caller guarantees such a string.
        let text = unsafe { CStr::from_ptr(function) }.to_string_lossy();
        let name = known.enter(&text, header);
        known.by_address.insert(function as usize, name);
        name
    }

    /// Returns the name of a function by its text, and enters it into the table in `header`.
    pub fn find_text(&self, function: &str, header: &[AtomicU64]) -> Name {
        self.known.lock().unwrap_or_else(|e| e.into_inner()).enter(function, header)
    }
}

impl Known {
    /// Returns the name of a function, with a new number if it has none. Names for which there is no room have the number
    /// of the last one that had.
    fn enter(&mut self, function: &str, header: &[AtomicU64]) -> Name {
        if let Some(name) = self.by_text.get(function) {
            return *name;
        }
        // MPICH's functions have an inner function for several outer ones.
        let text = match function.strip_prefix("internal_").or_else(|| function.strip_prefix("internalX_")) {
            Some(rest) => format!("MPI_{rest}"),
            None => function.to_string(),
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
        let polls = POLLS.iter().any(|start| text.starts_with(start));
        let name = Name { number: number as u16, polls, coarse: is_coarse(&text) };
        self.by_text.insert(function.to_string(), name);
        name
    }
}

#[cfg(test)]
mod tests {
    use super::is_coarse;

    #[test]
    fn functions_are_coarse_by_their_names() {
        for name in [
            "Barrier",
            "Ibcast",
            "Ialltoallw_c",
            "Ineighbor_allgather",
            "Iscan",
            "Allreduce_init",
            "Win_fence",
            "Win_lock_all",
            "Win_flush_local",
            "File_write_at_all",
            "Comm_split",
            "Cart_sub",
            "Comm_idup",
            "Intercomm_merge",
        ] {
            assert!(is_coarse(&format!("MPI_{name}")), "{name}");
        }
        for name in [
            "Send",
            "Isend",
            "Irecv",
            "Sendrecv",
            "Wait",
            "Waitall",
            "Test",
            "Iprobe",
            "Imrecv",
            "Start",
            "Put",
            "Rget",
            "Accumulate",
            "Comm_rank",
            "Cart_coords",
            "Comm_get_attr",
            "Win_test",
            "Win_get_group",
            "Reduce_local",
            "Init",
            "Type_commit",
            "Get_count",
            "Wtime",
        ] {
            assert!(!is_coarse(&format!("MPI_{name}")), "{name}");
        }
    }
}
