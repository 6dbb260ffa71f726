//! Place of the writable data of the executable.

use std::ffi::c_void;
use std::hash::{Hash, Hasher};

/// Size of a page, bytes.
pub const PAGE: usize = 4096;

/// The writable data of the executable, in whole pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Globals {
    /// Address of the first byte.
    pub base: usize,
    /// Number of bytes.
    pub size: usize,
    /// Number of bytes at the beginning that come from the executable's file; the others begin as zeros.
    pub from_file: usize,
    /// A number that is the same for all processes that run the same executable, wherever it is loaded.
    pub identity: u64,
}

impl Globals {
    /// Finds the writable data of this process's executable; None if it has none.
    pub fn find() -> Option<Globals> {
        let mut found = None;
        // SAFETY: the function is called during the call only, with a pointer to `found`, one at a time.
        unsafe { libc::dl_iterate_phdr(Some(look), std::ptr::from_mut(&mut found).cast()) };
        found
    }
}

/// Looks at the first object, which is the executable, and ends the iteration.
unsafe extern "C" fn look(object: *mut libc::dl_phdr_info, _: libc::size_t, to: *mut c_void) -> libc::c_int {
    // SAFETY: `find` passes a pointer to its variable; the loader passes a valid object.
    let (found, object) = unsafe { (&mut *to.cast::<Option<Globals>>(), &*object) };
    // SAFETY: the loader guarantees that many headers.
    let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
    let load = object.dlpi_addr as usize;
    let mut hasher = std::hash::DefaultHasher::new();
    for h in headers {
        (h.p_type, h.p_flags, h.p_offset, h.p_vaddr, h.p_filesz, h.p_memsz).hash(&mut hasher);
        if h.p_type == libc::PT_NOTE {
            let at = (load + h.p_vaddr as usize) as *const u8;
            // SAFETY: notes are mapped with the executable; among them is the build's number.
            unsafe { std::slice::from_raw_parts(at, h.p_memsz as usize) }.hash(&mut hasher);
        }
    }
    // Pages that the loader has made read-only, after it has relocated the addresses in them.
    let sealed = headers.iter().find(|h| h.p_type == libc::PT_GNU_RELRO);
    let sealed = sealed.map_or(0, |h| (h.p_vaddr + h.p_memsz) as usize / PAGE * PAGE);
    let writable = headers.iter().filter(|h| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_W != 0);
    let ranges = writable.map(|h| (h.p_vaddr as usize, (h.p_vaddr + h.p_memsz) as usize));
    let (from, to) = ranges.fold((usize::MAX, 0), |(from, to), (start, end)| (from.min(start), to.max(end)));
    let from = (from / PAGE * PAGE).max(sealed);
    let writable = headers.iter().filter(|h| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_W != 0);
    let file_end = writable.map(|h| (h.p_vaddr + h.p_filesz) as usize).max().unwrap_or(0);
    if from < to {
        let (base, size) = (load + from, to.next_multiple_of(PAGE) - from);
        let from_file = file_end.saturating_sub(from).next_multiple_of(PAGE).min(size);
        *found = Some(Globals { base, size, from_file, identity: hasher.finish() });
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    static INITIALISED: AtomicU64 = AtomicU64::new(7);
    static ZERO: AtomicU64 = AtomicU64::new(0);

    #[test]
    fn statics_of_the_program_lie_in_its_writable_pages() {
        let globals = Globals::find().expect("the test has statics");
        assert_eq!((globals.base % PAGE, globals.size % PAGE), (0, 0));
        for object in [&INITIALISED, &ZERO] {
            object.fetch_add(1, Ordering::Relaxed);
            let at = std::ptr::from_ref(object) as usize;
            assert!(at >= globals.base && at + 8 <= globals.base + globals.size, "{at:#x} {globals:x?}");
        }
        // All its pages are writable and no other mapping's.
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let covered: usize = maps
            .lines()
            .filter(|line| line.contains(" rw-p "))
            .filter_map(|line| {
                let (from, rest) = line.split_once('-')?;
                let (to, _) = rest.split_once(' ')?;
                let of = |text| usize::from_str_radix(text, 16).ok();
                let (from, to) = (of(from)?.max(globals.base), of(to)?.min(globals.base + globals.size));
                to.checked_sub(from)
            })
            .sum();
        assert_eq!(covered, globals.size);
        assert_eq!(Globals::find(), Some(globals));
    }
}
