//! Parts as read back: checked, and decoded. A part may belong to a process that has died, or that still runs.

use super::clock::Conversion;
use super::event::Event;
use super::layout::{
    block, fact, State, BLOCK_BYTES, BLOCK_EVENTS, BLOCK_WORDS, EVENT_WORDS, FACTS_BYTES, HEADER_BYTES, MAGIC, NAMES,
    NAME_BYTES,
};
use super::merged::MergeError;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Returns the path of a rank's part of a trace.
pub fn part_path(file: &Path, rank: u32) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(format!(".{rank}.part"));
    path.into()
}

/// The facts in the header of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Identifies the job.
    pub job: u64,
    /// The rank.
    pub rank: u32,
    /// Number of ranks.
    pub ranks: u32,
    /// The rank's host.
    pub host: u32,
    /// True if the process has stopped recording.
    pub ended: bool,
    /// CLOCK_MONOTONIC and CLOCK_REALTIME at the start, ns.
    pub start: i64,
    pub wall: i64,
    /// Identifies the machine.
    pub boot: u64,
    /// Handlers whose messages have a tag.
    pub tagged: u64,
}

/// An event with its time and the thread that has recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Beginning, ns of CLOCK_MONOTONIC.
    pub from: i64,
    /// Duration, ns; 0 for events without.
    pub lasted: i64,
    /// Number of the thread.
    pub thread: u32,
    /// The event.
    pub event: Event,
}

/// A part.
pub struct Part {
    path: PathBuf,
    file: File,
    words: Vec<u64>,
    /// Its facts.
    pub facts: Facts,
    /// Number of events that are lost.
    pub lost: u64,
}

impl Part {
    /// Opens a part and checks its header.
    pub fn open(path: &Path) -> Result<Part, MergeError> {
        let failed = |error| MergeError::Read { path: path.into(), error };
        let file = File::open(path).map_err(failed)?;
        let have = file.metadata().map_err(failed)?.len();
        let words = match read(&file, 0, HEADER_BYTES) {
            Ok(words) => words,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Err(MergeError::Truncated { path: path.into(), have, need: HEADER_BYTES as u64 })
            }
            Err(error) => return Err(failed(error)),
        };
        if words[fact::MAGIC] != MAGIC {
            return Err(MergeError::NotAPart { path: path.into() });
        }
        let need = words[fact::BLOCKS].saturating_mul(BLOCK_BYTES as u64).saturating_add(HEADER_BYTES as u64);
        if have < need {
            return Err(MergeError::Truncated { path: path.into(), have, need });
        }
        let facts = Facts {
            job: words[fact::JOB],
            rank: words[fact::RANK] as u32,
            ranks: words[fact::RANKS] as u32,
            host: words[fact::HOST] as u32,
            ended: words[fact::ENDED] != 0,
            start: words[fact::FIRST + 1] as i64,
            wall: words[fact::WALL] as i64,
            boot: words[fact::BOOT],
            tagged: words[fact::TAGGED],
        };
        let lost = words[fact::LOST];
        Ok(Part { path: path.into(), file, words, facts, lost })
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the names of functions, by their numbers.
    pub fn names(&self) -> Vec<String> {
        let count = (self.words[fact::NAMES] as usize).min(NAMES);
        let name = |number: usize| {
            let words = &self.words[(FACTS_BYTES + number * NAME_BYTES) / 8..][..NAME_BYTES / 8];
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|b| *b != 0).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        (0..count).map(name).collect()
    }

    /// Reads all events, sorted by their beginnings. Blocks that the process overwrites at the same time are left out
    /// and counted as lost, and so are events of unknown kinds.
    pub fn events(&mut self) -> Result<Vec<Timed>, MergeError> {
        let mut pairs = vec![self.pair(fact::FIRST), self.pair(fact::LAST)];
        let mut found: Vec<(u64, u32, Event)> = Vec::new();
        for number in 0..self.words[fact::BLOCKS] {
            let at = HEADER_BYTES as u64 + number * BLOCK_BYTES as u64;
            let Some((state, words)) = self.block(at)? else { continue };
            pairs.push((words[block::PAIR], words[block::PAIR + 1]));
            let thread = words[block::THREAD] as u32;
            for event in words[EVENT_WORDS..].chunks_exact(EVENT_WORDS).take(state.count) {
                match Event::of(event) {
                    Some(known) => found.push((event[0], thread, known)),
                    None => self.lost += 1,
                }
            }
        }
        pairs.retain(|pair| *pair != (0, 0));
        if pairs.is_empty() {
            return Err(MergeError::NotAPart { path: self.path.clone() });
        }
        let conversion = Conversion::new(pairs);
        let timed = found.into_iter().map(|(stamp, thread, event)| {
            let at = conversion.nanoseconds(stamp);
            let (from, lasted) = match event {
                Event::Call { lasted, .. } => (at, conversion.nanoseconds(stamp.saturating_add(lasted)) - at),
                Event::Wait { lasted, ago, .. } => (at - ago as i64 - lasted as i64, lasted as i64),
                Event::Sleep { lasted, .. } | Event::Payload { lasted, .. } => (at - lasted as i64, lasted as i64),
                Event::Message(..) | Event::Hop { .. } => (at, 0),
            };
            Timed { from, lasted, thread, event }
        });
        let mut events: Vec<Timed> = timed.collect();
        // Of calls that begin at the same time, the longer one contains the other.
        events.sort_by_key(|timed| (timed.from, -timed.lasted));
        Ok(events)
    }

    fn pair(&self, at: usize) -> (u64, u64) {
        (self.words[at], self.words[at + 1])
    }

    /// Reads a block. None if it is empty or was overwritten meanwhile.
    fn block(&mut self, at: u64) -> Result<Option<(State, Vec<u64>)>, MergeError> {
        let failed = |error| MergeError::Read { path: self.path.clone(), error };
        let words = read(&self.file, at, BLOCK_BYTES).map_err(failed)?;
        let state = State::of(words[block::STATE]);
        if state.claim == 0 || state.count == 0 {
            return Ok(None);
        }
        debug_assert!(state.count <= BLOCK_EVENTS && words.len() == BLOCK_WORDS);
        let again = if self.facts.ended { state } else { State::of(read(&self.file, at, 8).map_err(failed)?[0]) };
        if again.claim != state.claim {
            self.lost += state.count as u64;
            return Ok(None);
        }
        Ok(Some((state, words)))
    }
}

/// Reads words of a file.
fn read(file: &File, at: u64, bytes: usize) -> io::Result<Vec<u64>> {
    let mut buffer = vec![0; bytes];
    file.read_exact_at(&mut buffer, at)?;
    Ok(buffer.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default())).collect())
}
