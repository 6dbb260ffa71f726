//! A stats page: counters that a process publishes in shared memory after its mailbox, for tools such as `ntbring
//! stats`.
//!
//! | word | holds |
//! |---|---|
//! | 0 | number of requests by readers for a new snapshot |
//! | 1 | sequence counter (seqlock): odd while the snapshot is being written |
//! | 2 | time of the snapshot, ns of CLOCK_MONOTONIC |
//! | 3 | format number of the snapshot's words: a different meaning has a different number |
//! | 4 | number of words in the snapshot |
//! | 5 | size of the page, bytes |
//! | 8 to 39 | live words, which the owner updates all the time |
//! | from 40 | words of the snapshot |
//!
//! A reader retries until it has read a snapshot that was not written meanwhile. A request costs the owner nothing
//! until it next checks its mailbox: the request raises the mailbox's counter, as a note does.

use crate::clock;
use crate::memory_file::{MemoryFile, PAGE};
use crate::HostError;
use ntbring_memory::{InWindow, OutWindow, Region};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const ASKED: usize = 0;
const WRITTEN: usize = 8;
const TIME: usize = 16;
const MEANING: usize = 24;
const COUNT: usize = 32;
const SIZE: usize = 40;
const LIVE: usize = 64;

/// Offset of the page in the memory file, bytes: behind the file's first page and the mailbox.
const START: u64 = 2 * PAGE as u64;
const WORDS: usize = LIVE + 8 * StatsPage::LIVE_WORDS;

/// Offset in the mailbox's page of the counter of all notes ever posted and of other wake-ups of the owner, bytes.
pub(super) const POSTED: usize = 0;

/// Number of reads disturbed by the writer after which a reader gives up.
const TRIES: usize = 1000;

/// A stats page: of this process, or of another process.
#[derive(Clone)]
pub struct StatsPage {
    /// The mailbox's page, with its counter of notes and requests.
    mailbox: Region,
    words: Region,
}

/// A snapshot that was written into a stats page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// Format number: it identifies the meaning of the words.
    pub meaning: u64,
    /// The words of the snapshot.
    pub words: Vec<u64>,
    /// Time of the snapshot, ns of CLOCK_MONOTONIC.
    pub time: u64,
}

impl Posted {
    /// Returns the age of the snapshot.
    pub fn age(&self) -> Duration {
        Duration::from_nanos(clock::now().saturating_sub(self.time))
    }
}

impl StatsPage {
    /// Number of live words, which the owner updates all the time.
    pub const LIVE_WORDS: usize = 32;

    /// Returns the size of a stats page for `words` words, in bytes, rounded up to whole pages.
    pub(super) fn bytes(words: usize) -> u64 {
        (WORDS + 8 * words).next_multiple_of(PAGE) as u64
    }

    /// Stores the size of the page in a new memory file.
    pub(super) fn begin(memory: &MemoryFile, bytes: u64) -> Result<(), HostError> {
        OutWindow::new(memory.map(START, PAGE as u64)?).store(SIZE, bytes);
        Ok(())
    }

    /// Maps the stats page that follows the mailbox in this memory file.
    pub(super) fn of(memory: &MemoryFile) -> Result<StatsPage, HostError> {
        let (mailbox, start) = (PAGE as u64, START);
        // If the file is too small for a stats page of this size, the mapping fails.
        let len = InWindow::new(memory.map(start, PAGE as u64)?).load(SIZE).max(PAGE as u64);
        Ok(StatsPage { mailbox: memory.map(mailbox, PAGE as u64)?, words: memory.map(start, len)? })
    }

    /// Returns the live words; initially zero.
    pub fn live(&self) -> Region {
        self.words.part(LIVE, 8 * Self::LIVE_WORDS)
    }

    /// Returns the maximum number of words in a snapshot.
    pub fn room(&self) -> usize {
        (self.words.len() - WORDS) / 8
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        self.words.word(at)
    }

    /// Writes a snapshot: as many of `words` as fit, with the format number `meaning`. Only the owner may call it.
    pub fn write(&self, meaning: u64, words: &[u64]) {
        let (out, written) = (OutWindow::new(self.words.clone()), self.word(WRITTEN).load(Ordering::Relaxed));
        let words = &words[..words.len().min(self.room())];
        // The stores have release ordering: each becomes visible after those before it.
        out.store(WRITTEN, written.wrapping_add(1));
        words.iter().enumerate().for_each(|(i, word)| out.store(WORDS + 8 * i, *word));
        out.store(COUNT, words.len() as u64);
        out.store(MEANING, meaning);
        out.store(TIME, clock::now());
        out.store(WRITTEN, written.wrapping_add(2));
    }

    /// Returns the latest snapshot; None if there is none yet, or if the writer disturbed 1000 reads.
    pub fn read(&self) -> Option<Posted> {
        let window = InWindow::new(self.words.clone());
        for _ in 0..TRIES {
            let written = window.load(WRITTEN);
            if written == 0 {
                return None;
            }
            let count = (window.load(COUNT) as usize).min(self.room());
            let words = (0..count).map(|i| window.load(WORDS + 8 * i)).collect();
            let posted = Posted { meaning: window.load(MEANING), words, time: window.load(TIME) };
            if written.is_multiple_of(2) && window.load(WRITTEN) == written {
                return Some(posted);
            }
            std::thread::yield_now();
        }
        None
    }

    /// Requests a new snapshot, which the owner writes when it next checks its mailbox.
    pub fn ask(&self) {
        self.word(ASKED).fetch_add(1, Ordering::AcqRel);
        self.nudge();
    }

    /// Makes the owner check its mailbox.
    pub fn nudge(&self) {
        self.mailbox.register(POSTED).fetch_add(1, Ordering::SeqCst);
    }

    /// Returns the number of requests so far.
    pub fn asked(&self) -> u64 {
        self.word(ASKED).load(Ordering::Acquire)
    }

    /// Returns the age of the latest snapshot; None if there is none yet.
    pub fn age(&self) -> Option<Duration> {
        let time = self.word(TIME).load(Ordering::Relaxed);
        (time != 0).then(|| Duration::from_nanos(clock::now().saturating_sub(time)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::mailbox::{Mailbox, NoteReader};
    use super::*;
    use ntbring_memory::Word;
    use std::path::Path;
    use std::sync::atomic::AtomicBool;

    fn pair(words: usize) -> (Mailbox, StatsPage, StatsPage) {
        let (mine, address) = Mailbox::create(Path::new("/dev/shm"), words).unwrap();
        let theirs = Mailbox::open(&address).unwrap().stats_page().unwrap();
        let own = mine.stats_page().unwrap();
        (mine, own, theirs)
    }

    #[test]
    fn what_is_written_is_read_and_whoever_asks_is_noticed() {
        let (mut mailbox, own, theirs) = pair(1000);
        assert!(own.room() >= 1000);
        assert_eq!((theirs.read(), theirs.age(), mailbox.has_news()), (None, None, false));
        own.write(7, &[1, 2, 3]);
        let posted = theirs.read().unwrap();
        assert_eq!((posted.meaning, posted.words), (7, vec![1, 2, 3]));
        theirs.ask();
        assert!(mailbox.has_news() && own.asked() == 1);
        assert!(mailbox.read(NoteReader::Process).is_none() && !mailbox.has_news(), "it is no note");
        // More than there is room for is cut.
        own.write(8, &vec![5; own.room() + 1]);
        assert_eq!(theirs.read().unwrap().words.len(), own.room());
        // Notes do not overwrite it.
        Word::new(&own.live(), 8).store(9, Ordering::Relaxed);
        assert!(Mailbox::post(&mailbox, NoteReader::Process, &[0xff; 120]));
        assert_eq!(Word::new(&theirs.live(), 8).load(Ordering::Relaxed), 9);
        assert_eq!(theirs.read().unwrap().meaning, 8);
    }

    #[test]
    fn nobody_reads_what_is_half_written() {
        let (_mailbox, own, theirs) = pair(64);
        let stop = AtomicBool::new(false);
        own.write(0, &[0; 64]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 1.. {
                    own.write(i, &[i; 64]);
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    std::thread::yield_now();
                }
            });
            for _ in 0..10_000 {
                if let Some(posted) = theirs.read() {
                    assert!(posted.words.iter().all(|word| *word == posted.meaning), "{posted:?}");
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
