//! The words of a part: a header, the names of functions, and the blocks of events. All are 64 bits wide, in the byte
//! order of the machine.

/// The first word of a part: its name and version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"ntbtime\x02");

/// Bytes before the blocks.
pub const HEADER_BYTES: usize = 64 << 10;
/// Bytes before the names.
pub const FACTS_BYTES: usize = 4 << 10;
/// Bytes of a name, with zeros at the end.
pub const NAME_BYTES: usize = 64;
/// Number of names for which there is room.
pub const NAMES: usize = (HEADER_BYTES - FACTS_BYTES) / NAME_BYTES;

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 4 << 10;
/// Words of an event, and of a block's header.
pub const EVENT_WORDS: usize = 4;
/// Words of a block.
pub const BLOCK_WORDS: usize = BLOCK_BYTES / 8;
/// Number of events that a block holds.
pub const BLOCK_EVENTS: usize = BLOCK_WORDS / EVENT_WORDS - 1;

/// Words of the header, by their numbers.
pub mod fact {
    /// [`super::MAGIC`], once the header is complete.
    pub const MAGIC: usize = 0;
    /// Identifies the job.
    pub const JOB: usize = 1;
    /// The rank.
    pub const RANK: usize = 2;
    /// Number of ranks in the job.
    pub const RANKS: usize = 3;
    /// The rank's host.
    pub const HOST: usize = 4;
    /// Number of blocks.
    pub const BLOCKS: usize = 5;
    /// 1 once the process has stopped recording.
    pub const ENDED: usize = 6;
    /// The first pair of a time stamp and nanoseconds of CLOCK_MONOTONIC.
    pub const FIRST: usize = 7;
    /// The last such pair; zeros until the process has stopped recording.
    pub const LAST: usize = 9;
    /// Nanoseconds of CLOCK_REALTIME at the first pair.
    pub const WALL: usize = 11;
    /// Identifies the machine since its start: machines differ in CLOCK_MONOTONIC.
    pub const BOOT: usize = 12;
    /// Number of events that were overwritten, or for which there was no block.
    pub const LOST: usize = 13;
    /// Number of claims of blocks.
    pub const CLAIMS: usize = 14;
    /// Number of names.
    pub const NAMES: usize = 15;
    /// Handlers whose messages have a tag, one bit each.
    pub const TAGGED: usize = 16;
}

/// Words of a block's header, by their numbers; the events follow.
pub mod block {
    /// [`super::State`] of the block.
    pub const STATE: usize = 0;
    /// Number of the thread that fills it.
    pub const THREAD: usize = 1;
    /// A pair of a time stamp and nanoseconds of CLOCK_MONOTONIC.
    pub const PAIR: usize = 2;
}

/// The state of a block in one word, so that it changes at once: the number of the claim by which a thread got it (0:
/// none yet), the number of events in it, and whether the thread still fills it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Number of the claim, from 1 on.
    pub claim: u64,
    /// Number of complete events.
    pub count: usize,
    /// True while its thread fills it.
    pub open: bool,
}

impl State {
    /// Encodes the state.
    #[inline(always)]
    pub fn word(self) -> u64 {
        self.claim << 16 | (self.count as u64) << 1 | u64::from(self.open)
    }

    /// Decodes the state.
    pub fn of(word: u64) -> State {
        State { claim: word >> 16, count: State::count(word).min(BLOCK_EVENTS), open: word & 1 != 0 }
    }

    /// Decodes the number of events alone.
    #[inline(always)]
    pub fn count(word: u64) -> usize {
        word as usize >> 1 & 0x7fff
    }

    /// Encodes the state with one more event, which must have room.
    #[inline(always)]
    pub fn with_one_more(word: u64) -> u64 {
        word + (1 << 1)
    }
}
