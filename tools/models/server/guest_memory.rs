//! The memory of a virtual machine.

use memmap2::{MmapOptions, MmapRaw};
use ntbring_memory::Region;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// The files of a virtual machine's memory. Each is mapped once and as a whole: with an IOMMU in the machine there is a
/// message for every page.
#[derive(Default)]
pub struct GuestMemory {
    /// By device and inode.
    files: HashMap<(u64, u64), Region>,
}

impl GuestMemory {
    /// Returns a part of a file. Fails if the part does not lie in it.
    pub fn part(&mut self, file: &File, offset: u64, size: u64) -> io::Result<Region> {
        let about = file.metadata()?;
        let key = (about.dev(), about.ino());
        let whole = match self.files.get(&key) {
            Some(region) => region.clone(),
            None => {
                let region = map(file, about.len() as usize)?;
                self.files.insert(key, region.clone());
                region
            }
        };
        let is_inside = offset.checked_add(size).is_some_and(|end| end <= whole.len() as u64) && offset % 8 == 0;
        is_inside.then(|| whole.part(offset as usize, size as usize)).ok_or(io::ErrorKind::InvalidInput.into())
    }

    /// Forgets all files.
    pub fn clear(&mut self) {
        self.files.clear();
    }
}

fn map(file: &File, len: usize) -> io::Result<Region> {
    let map: MmapRaw = MmapOptions::new().len(len).map_raw(file)?;
    let base = map.as_mut_ptr();
    // SAFETY: the mapping lives as long as its owner, and no reference to it exists; it starts at a page.
    Ok(unsafe { Region::new(base, len, Arc::new(map)) })
}
