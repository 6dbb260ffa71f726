//! The record of a process's latest MPI call, which the process manager reads if the process fails.

use memmap2::{MmapOptions, MmapRaw};
use std::fs::{read_link, File};
use std::os::fd::{FromRawFd, RawFd};
use std::sync::OnceLock;

/// Size of a record, bytes: a name and a zero byte.
pub const CALL_RECORD_BYTES: usize = 64;

/// Returns this process's record, [`CALL_RECORD_BYTES`] zeroes at first, which stays where it is until the process ends.
/// None if the process manager has not provided one (environment variable `PMI_CALL_RECORD`, `FD:INDEX`).
pub fn call_record() -> Option<*mut u8> {
    static RECORDS: OnceLock<Option<(MmapRaw, usize)>> = OnceLock::new();
    let records = RECORDS.get_or_init(|| map(&std::env::var("PMI_CALL_RECORD").ok()?));
    records.as_ref().map(|(map, at)| map.as_mut_ptr().wrapping_add(*at))
}

/// Maps the records with descriptor `FD`, closes it, and returns the offset of record `INDEX` in them.
fn map(place: &str) -> Option<(MmapRaw, usize)> {
    let (fd, index) = place.split_once(':')?;
    let (fd, index): (RawFd, usize) = (fd.parse().ok()?, index.parse().ok()?);
    // In a program that a rank has started, the descriptor is closed, or is another file.
    let name = read_link(format!("/proc/self/fd/{fd}")).ok()?;
    if !name.to_str()?.starts_with("/memfd:hydra-calls") {
        return None;
    }
    // SAFETY: it is open, and its name says that the process manager has passed it to this process for this use.
    let file = unsafe { File::from_raw_fd(fd) };
    let at = index.checked_mul(CALL_RECORD_BYTES)?;
    let end = at.checked_add(CALL_RECORD_BYTES)?;
    // Beyond the end of the file a write would be a bus error.
    (end as u64 <= file.metadata().ok()?.len()).then_some(())?;
    Some((MmapOptions::new().len(end).map_raw(&file).ok()?, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::memfd::{memfd_create, MemFdCreateFlag};
    use std::os::fd::{AsRawFd, IntoRawFd};

    /// Creates a file in memory of two records.
    fn file(name: &std::ffi::CStr) -> File {
        let file = File::from(memfd_create(name, MemFdCreateFlag::empty()).unwrap());
        file.set_len(2 * CALL_RECORD_BYTES as u64).unwrap();
        file
    }

    #[test]
    fn a_record_is_part_of_the_process_managers_file() {
        let shared = file(c"hydra-calls");
        let of = |index| format!("{}:{index}", shared.try_clone().unwrap().into_raw_fd());
        let (map_of_1, at) = map(&of("1")).unwrap();
        assert_eq!((map_of_1.len(), at), (2 * CALL_RECORD_BYTES, CALL_RECORD_BYTES));
        assert!(map(&of("2")).is_none() && map(&of("18446744073709551615")).is_none());
    }

    #[test]
    fn other_files_and_other_words_are_left_alone() {
        let other = file(c"other");
        let fd = other.as_raw_fd();
        assert!(map(&format!("{fd}:0")).is_none());
        assert!(["", "x", ":", "1:", "-1:0", "9999:0", "x:0"].iter().all(|place| map(place).is_none()));
        assert!(other.metadata().is_ok());
    }
}
