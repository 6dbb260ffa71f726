//! The mapped part of this process: its start and end, and the blocks that threads fill.

use super::clock::{nanoseconds, Clock};
use super::layout::{block, fact, State, BLOCK_BYTES, BLOCK_EVENTS, BLOCK_WORDS, EVENT_WORDS, HEADER_BYTES, MAGIC};
use super::merge::{merge, Parts};
use super::merged::{MergeError, Merged};
use super::names::Names;
use super::part::part_path;
use memmap2::{MmapOptions, MmapRaw};
use std::fs::{remove_file, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Smallest number of blocks, so that every thread that records has one.
const BLOCKS_MIN: usize = 32;

/// Time between the two pairs of the clocks that are taken at the start.
const CALIBRATION: Duration = Duration::from_millis(1);

/// Facts about the part of a process, and its place.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The file of the trace, to whose name those of the parts are added.
    pub file: &'a Path,
    /// Number of events for which there is room.
    pub events: usize,
    /// Identifies the job.
    pub job: u64,
    /// This rank.
    pub rank: u32,
    /// Number of ranks.
    pub ranks: u32,
    /// The host of this rank.
    pub host: u32,
    /// Handlers whose messages have a tag, one bit each.
    pub tagged: u64,
    /// The calls that are recorded.
    pub calls: Calls,
}

/// The calls that a timeline shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Calls {
    /// Collectives, synchronisation of windows, files, and communicators that come and go: all that is called rarely
    /// compared to messages. Of other calls waits are recorded, with their names.
    #[default]
    Coarse,
    /// All calls.
    All,
}

/// A part that cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The file of the trace cannot be replaced by a trace.
    #[error("NTBRING_TIMELINE={file} is not a regular file; no timeline is recorded")]
    NotAFile {
        /// The file.
        file: PathBuf,
    },
    /// The part cannot be created.
    #[error(
        "NTBRING_TIMELINE: {part} cannot be created: {error}; no timeline is recorded. Its directory must exist and be \
         writable, with {size} bytes free for each rank (less with NTBRING_TIMELINE_EVENTS)"
    )]
    Part {
        /// The part.
        part: PathBuf,
        /// Its size.
        size: usize,
        /// The problem.
        error: io::Error,
    },
}

/// The part that a process records.
pub struct Recorder {
    pub(super) clock: Clock,
    pub(super) calls: Calls,
    words: &'static [AtomicU64],
    blocks: u64,
    pub(super) names: Names,
}

/// The part that is recorded now; NULL if no timeline is on.
pub(super) static CURRENT: AtomicPtr<Recorder> = AtomicPtr::new(null_mut());

/// The endpoints that record in the present part.
struct Users {
    count: u32,
    /// Number of parts that this process has begun.
    parts: u32,
    /// The part, for [`stop`].
    of: Option<Stopped>,
}

static USERS: Mutex<Users> = Mutex::new(Users { count: 0, parts: 0, of: None });

/// A part that is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The file of the trace.
    pub file: PathBuf,
    /// Identifies the job.
    pub job: u64,
    /// The rank.
    pub rank: u32,
    /// Number of ranks.
    pub ranks: u32,
}

impl Stopped {
    /// Joins the parts of all ranks, once all of them are complete, and removes them.
    pub fn merge(&self) -> Result<Merged, MergeError> {
        let merged = merge(&self.file, Parts::Of { job: self.job, ranks: self.ranks })?;
        merged.parts.iter().for_each(|part| {
            let _ = remove_file(part);
        });
        Ok(merged)
    }
}

/// Starts recording; does nothing but count if this process records already, with another endpoint. Returns an error if
/// the part cannot be created; [`stop`] must not be called then.
pub fn start(job: &Job<'_>) -> Result<(), StartError> {
    let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
    if users.count == 0 {
        // A process that finalises MPI and initialises it again, in sessions, records another trace.
        let mut file = job.file.as_os_str().to_owned();
        if users.parts > 0 {
            file.push(format!(".{}", users.parts + 1));
        }
        let file = PathBuf::from(file);
        if file.metadata().is_ok_and(|found| !found.is_file()) {
            return Err(StartError::NotAFile { file });
        }
        let part = part_path(&file, job.rank);
        let blocks = job.events.div_ceil(BLOCK_EVENTS).max(BLOCKS_MIN);
        let size = HEADER_BYTES + blocks * BLOCK_BYTES;
        let map = create(&part, size).map_err(|error| StartError::Part { part, size, error })?;
        let recorder = Recorder::new(map, blocks, job);
        // Threads may still use the part after the end of the timeline, so it stays until the end of the process.
        CURRENT.store(Box::into_raw(Box::new(recorder)), Ordering::Release);
        users.parts += 1;
        users.of = Some(Stopped { file, job: job.job, rank: job.rank, ranks: job.ranks });
    }
    users.count += 1;
    Ok(())
}

/// Stops recording for one endpoint; the last one completes the part, and gets it.
pub fn stop() -> Option<Stopped> {
    let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
    users.count = users.count.saturating_sub(1);
    let recorder = current().filter(|_| users.count == 0)?;
    CURRENT.store(null_mut(), Ordering::Release);
    recorder.end();
    users.of.take()
}

/// Returns the part that is recorded now.
#[inline(always)]
pub(super) fn current() -> Option<&'static Recorder> {
    // SAFETY: NULL, or from `Box::into_raw` of a value that is never freed.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// Creates and maps a part. All its space is allocated, because a write to the mapping cannot report that a disc is
/// full. The file of an earlier job is replaced, not overwritten, since a process may have it mapped.
fn create(path: &Path, size: usize) -> io::Result<MmapRaw> {
    match remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    allocate(&file, size).and_then(|()| MmapOptions::new().len(size).map_raw(&file)).inspect_err(|_| {
        let _ = remove_file(path);
    })
}

fn allocate(file: &File, size: usize) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the call changes nothing but its file.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, size as libc::off_t) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

impl Recorder {
    fn new(map: MmapRaw, blocks: usize, job: &Job<'_>) -> Recorder {
        let map: &'static MmapRaw = Box::leak(Box::new(map));
        // SAFETY: the mapping is never unmapped, begins at a page, has been zeroed by the kernel, and is as long as the
        // slice; it is accessed only by atomic operations.
        let words = unsafe { std::slice::from_raw_parts(map.as_ptr().cast::<AtomicU64>(), map.len() / 8) };
        let recorder = Recorder {
            clock: Clock::of_machine(),
            calls: job.calls,
            words,
            blocks: blocks as u64,
            names: Names::default(),
        };
        let set = |fact: usize, value: u64| words[fact].store(value, Ordering::Relaxed);
        set(fact::JOB, job.job);
        set(fact::RANK, job.rank.into());
        set(fact::RANKS, job.ranks.into());
        set(fact::HOST, job.host.into());
        set(fact::BLOCKS, blocks as u64);
        set(fact::TAGGED, job.tagged);
        set(fact::BOOT, boot());
        recorder.set_pair(fact::FIRST);
        set(fact::WALL, nanoseconds(libc::CLOCK_REALTIME));
        std::thread::sleep(CALIBRATION);
        recorder.set_pair(fact::LAST);
        words[fact::MAGIC].store(MAGIC, Ordering::Release);
        recorder
    }

    fn set_pair(&self, at: usize) {
        let (stamp, time) = self.clock.pair();
        self.words[at].store(stamp, Ordering::Relaxed);
        self.words[at + 1].store(time, Ordering::Relaxed);
    }

    fn end(&self) {
        self.set_pair(fact::LAST);
        self.words[fact::ENDED].store(1, Ordering::Release);
    }

    /// Returns the words before the blocks.
    pub(super) fn header(&self) -> &'static [AtomicU64] {
        &self.words[..HEADER_BYTES / 8]
    }

    /// Counts events that are lost.
    pub(super) fn lose(&self, events: u64) {
        self.words[fact::LOST].fetch_add(events, Ordering::Relaxed);
    }

    /// Claims the oldest block that no thread is filling, for the thread with this number. None if there is none.
    pub(super) fn claim(&self, thread: u64) -> Option<Filling> {
        for _ in 0..self.blocks {
            let claim = self.words[fact::CLAIMS].fetch_add(1, Ordering::Relaxed);
            let at = HEADER_BYTES / 8 + (claim % self.blocks) as usize * BLOCK_WORDS;
            let words: &'static Block = self.words[at..].first_chunk()?;
            let before = words[block::STATE].load(Ordering::Relaxed);
            let (old, state) = (State::of(before), State { claim: claim + 1, count: 0, open: true });
            if old.open
                || words[block::STATE]
                    .compare_exchange(before, state.word(), Ordering::AcqRel, Ordering::Relaxed)
                    .is_err()
            {
                continue;
            }
            if old.count > 0 {
                self.lose(old.count as u64);
            }
            let (stamp, time) = self.clock.pair();
            words[block::THREAD].store(thread, Ordering::Relaxed);
            words[block::PAIR].store(stamp, Ordering::Relaxed);
            words[block::PAIR + 1].store(time, Ordering::Relaxed);
            return Some(Filling { words, state: state.word() });
        }
        None
    }
}

/// The words of a block.
type Block = [AtomicU64; BLOCK_WORDS];

/// A block that a thread is filling.
#[derive(Clone, Copy)]
pub(super) struct Filling {
    words: &'static Block,
    /// Its [`State`], as one word: a copy of a struct with padding is slow to read back.
    state: u64,
}

impl Filling {
    /// Adds an event. Returns false if there is no room for it.
    #[inline(always)]
    pub fn put(&mut self, event: [u64; EVENT_WORDS]) -> bool {
        let at = (State::count(self.state) + 1) * EVENT_WORDS;
        let Some(words) = self.words.get(at..at + EVENT_WORDS) else { return false };
        for (word, value) in words.iter().zip(event) {
            word.store(value, Ordering::Relaxed);
        }
        self.state = State::with_one_more(self.state);
        self.words[block::STATE].store(self.state, Ordering::Release);
        true
    }

    /// Returns the words of the latest event, if there is one.
    pub fn latest(&self) -> Option<&'static [AtomicU64]> {
        let at = State::count(self.state) * EVENT_WORDS;
        (at > 0).then(|| &self.words[at..at + EVENT_WORDS])
    }

    /// Gives the block up: it may be claimed from now on.
    pub fn close(self) {
        let state = State { open: false, ..State::of(self.state) };
        self.words[block::STATE].store(state.word(), Ordering::Release);
    }
}

/// Identifies the machine since its start.
fn boot() -> u64 {
    let mut hasher = DefaultHasher::new();
    std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}
