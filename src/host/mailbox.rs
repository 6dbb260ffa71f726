//! A mailbox: a page of a process's memory in which any process of the same user can leave a note.
//! Hardware has nothing like it; it serves processes that meet outside the ring. Behind it lies the
//! process's [`Bulletin`].

use crate::bulletin::Bulletin;
use crate::introduction::FileKind;
use crate::memory_file::{FileAddress, MemoryFile, PAGE};
use crate::HostError;
use ntbring_memory::{InWindow, OutWindow, Region};
use std::path::Path;
use std::sync::atomic::Ordering;

const SLOTS: usize = 31;
const SLOT: usize = 128;
/// Bytes that a note may have.
pub const NOTE_MAX: usize = SLOT - 8;

/// Where it counts how many notes were ever posted, and other news.
pub(super) const POSTED: usize = 0;
const FREE: u32 = 0;
const TAKEN: u32 = 1;
const FULL: u32 = 2;

/// A mailbox, one's own or another's.
pub struct Mailbox {
    /// Keeps it open for others.
    memory: MemoryFile,
    page: Region,
    seen: u32,
}

/// The page of the notes: the one after the file's first.
const NOTES: u64 = PAGE as u64;

fn slot(i: usize) -> usize {
    (i + 1) * SLOT
}

impl Mailbox {
    /// A new, empty mailbox, and a bulletin for so many words.
    pub fn create(dir: &Path, words: usize) -> Result<(Mailbox, FileAddress), HostError> {
        let (memory, address) = MemoryFile::create(dir, NOTES + PAGE as u64 + Bulletin::bytes(words))?;
        let page = memory.map(NOTES, PAGE as u64)?;
        Ok((Mailbox { memory, page, seen: 0 }, address))
    }

    /// Says to whoever looks for jobs that it is one of this job's processes.
    pub fn introduce(&self, job: u32) -> Result<(), HostError> {
        self.memory.set_kind(FileKind::Process { job }.word())
    }

    /// What its owner says of itself.
    pub fn bulletin(&self) -> Result<Bulletin, HostError> {
        Bulletin::of(&self.memory)
    }

    /// Another process's mailbox.
    pub fn open(address: &FileAddress) -> Result<Mailbox, HostError> {
        let memory = MemoryFile::open(address)?;
        let page = memory.map(NOTES, PAGE as u64)?;
        Ok(Mailbox { memory, page, seen: 0 })
    }

    /// Leaves a note of at most [`NOTE_MAX`] bytes; false if the owner has to read others first.
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

    /// Has the owner look into it though there is no note.
    pub fn nudge(&self) {
        self.page.register(POSTED).fetch_add(1, Ordering::SeqCst);
    }

    /// Whether a note may have come since [`Mailbox::read`] found none. One load.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.page.register(POSTED).load(Ordering::Relaxed) != self.seen
    }

    /// Takes a note out, if there is one.
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
