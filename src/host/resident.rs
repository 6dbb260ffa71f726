//! Pages of this process that have contents of their own: those that were never written read as zeros and use no memory.

use crate::memory_file::PAGE;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bits of an entry of `/proc/self/pagemap`: the page is in memory, or in swap space.
const HAS_CONTENTS: u64 = 1 << 63 | 1 << 62;

/// Entries that are read at a time.
const ENTRIES: usize = 4096;

/// Calls `each` for each run of pages with contents among `pages` pages at address `base`, with the numbers of its first
/// page and of its pages; for all of them if the kernel does not tell. Stops at the first error.
pub fn each_run<E>(base: usize, pages: usize, mut each: impl FnMut(usize, usize) -> Result<(), E>) -> Result<(), E> {
    let Ok(map) = File::open("/proc/self/pagemap") else { return each(0, pages) };
    let mut run: Option<(usize, usize)> = None;
    let mut entries = vec![0; 8 * ENTRIES];
    for from in (0..pages).step_by(ENTRIES) {
        let count = ENTRIES.min(pages - from);
        let bytes = &mut entries[..8 * count];
        if map.read_exact_at(bytes, 8 * (base / PAGE + from) as u64).is_err() {
            bytes.fill(0xff);
        }
        for (i, entry) in bytes.chunks_exact(8).enumerate() {
            let has_contents = u64::from_ne_bytes(entry.try_into().expect("8 bytes")) & HAS_CONTENTS != 0;
            match (&mut run, has_contents) {
                (Some((_, length)), true) => *length += 1,
                (None, true) => run = Some((from + i, 1)),
                (Some(_), false) => run.take().map_or(Ok(()), |(first, length)| each(first, length))?,
                (None, false) => {}
            }
        }
    }
    run.map_or(Ok(()), |(first, length)| each(first, length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use memmap2::MmapMut;

    #[test]
    fn written_pages_are_found_and_others_are_not() {
        const PAGES: usize = 3 * ENTRIES;
        let mut map = MmapMut::map_anon(PAGES * PAGE).unwrap();
        for page in [0, 1, ENTRIES - 1, ENTRIES, PAGES - 1] {
            map[page * PAGE + 5] = 1;
        }
        // A page that was only read.
        assert_eq!(map[7 * PAGE], 0);
        let mut found = Vec::new();
        each_run::<()>(map.as_ptr() as usize, PAGES, |first, length| {
            found.extend((first..first + length).filter(|&page| map[page * PAGE + 5] == 1));
            Ok(())
        })
        .unwrap();
        assert_eq!(found, [0, 1, ENTRIES - 1, ENTRIES, PAGES - 1]);
    }
}
