//! A mailbox: a page of shared memory of a process in which any process of the same user can put short messages
//! (notes). It has no counterpart in NTB hardware; it serves processes of different jobs, which communicate outside the
//! ring. The process's [`StatsPage`] follows it in memory.

use crate::file_tag::FileKind;
use crate::memory_file::{FileAddress, MemoryFile, PAGE};
use crate::stats_page::{StatsPage, POSTED};
use crate::HostError;
use ntbring_memory::{InWindow, OutWindow, Region};
use std::path::Path;
use std::sync::atomic::Ordering;

const SLOTS: usize = 31;
const SLOT: usize = 128;
/// Maximum length of a note, bytes.
pub const NOTE_MAX: usize = SLOT - 8;

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const FULL: u32 = 2;

/// A mailbox: of this process, or of another process.
pub struct Mailbox {
    /// The memory file; it is kept open so that other processes can open it.
    memory: MemoryFile,
    page: Region,
    seen: u32,
}

/// Offset of the page with the notes, bytes: it follows the file's first page.
const NOTES: u64 = PAGE as u64;

fn slot(i: usize) -> usize {
    (i + 1) * SLOT
}

impl Mailbox {
    /// Creates an empty mailbox in `dir`, with a stats page for at least `words` words.
    pub fn create(dir: &Path, words: usize) -> Result<(Mailbox, FileAddress), HostError> {
        let (memory, address) = MemoryFile::create(dir, NOTES + PAGE as u64 + StatsPage::bytes(words))?;
        let page = memory.map(NOTES, PAGE as u64)?;
        Ok((Mailbox { memory, page, seen: 0 }, address))
    }

    /// Marks the memory file as that of a process of this job, for tools that list jobs.
    pub fn introduce(&self, job: u32) -> Result<(), HostError> {
        self.memory.set_kind(FileKind::Process { job }.word())
    }

    /// Returns the owner's stats page.
    pub fn stats_page(&self) -> Result<StatsPage, HostError> {
        StatsPage::of(&self.memory)
    }

    /// Opens another process's mailbox.
    pub fn open(address: &FileAddress) -> Result<Mailbox, HostError> {
        let memory = MemoryFile::open(address)?;
        let page = memory.map(NOTES, PAGE as u64)?;
        Ok(Mailbox { memory, page, seen: 0 })
    }

    /// Puts a note of at most [`NOTE_MAX`] bytes. Returns false if all slots are full: the owner has to read notes
    /// first. Panics if the note is longer.
    pub fn post(&self, note: &[u8]) -> bool {
        assert!(note.len() <= NOTE_MAX, "a note of {} bytes", note.len());
        for i in 0..SLOTS {
            let state = self.page.register(slot(i));
            if state.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                OutWindow::new(self.page.clone()).write_bytes(slot(i) + 8, note);
                state.store(FULL, Ordering::Release);
                self.page.register(POSTED).fetch_add(1, Ordering::SeqCst);
                return true;
            }
        }
        false
    }

    /// Makes the owner check its mailbox although there is no note.
    pub fn nudge(&self) {
        self.page.register(POSTED).fetch_add(1, Ordering::SeqCst);
    }

    /// Returns true if a note may have arrived since [`Mailbox::read`] last returned None. Costs one load.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.page.register(POSTED).load(Ordering::Relaxed) != self.seen
    }

    /// Removes and returns a note; None if there is none. Notes are padded with zeros or old bytes to [`NOTE_MAX`]
    /// bytes.
    pub fn read(&mut self) -> Option<[u8; NOTE_MAX]> {
        let posted = self.page.register(POSTED).load(Ordering::SeqCst);
        for i in 0..SLOTS {
            let state = self.page.register(slot(i));
            if state.load(Ordering::Acquire) == FULL {
                let mut note = [0; NOTE_MAX];
                InWindow::new(self.page.clone()).read(slot(i) + 8, &mut note);
                state.store(FREE, Ordering::Release);
                return Some(note);
            }
        }
        self.seen = posted;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_arrive_once_each_until_the_box_is_full() {
        let (mut mine, address) = Mailbox::create(Path::new("/dev/shm"), 0).unwrap();
        let theirs = Mailbox::open(&address).unwrap();
        assert!(!mine.has_news());
        for i in 0..SLOTS {
            assert!(theirs.post(&[i as u8 + 1; 10]));
        }
        assert!(!theirs.post(b"one too many"));
        assert!(mine.has_news());
        for i in 0..SLOTS {
            assert_eq!(mine.read().unwrap()[..10], [i as u8 + 1; 10]);
        }
        assert!(mine.read().is_none() && !mine.has_news());
        assert!(theirs.post(b"again"));
        assert_eq!(&mine.read().unwrap()[..5], b"again");
    }
}
