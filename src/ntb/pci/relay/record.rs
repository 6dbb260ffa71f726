//! Records: the operations on a window, in the order in which they were made.

use ntbring_memory::{OutWindow, Region};

/// Size of a lane of records, bytes.
pub const LANE: u64 = 128 << 10;

/// Length of the offset at the start of a record that writes, bytes.
pub(super) const OFFSET: usize = 8;

/// Kinds of records, as the kinds of the entries of the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Stores one word: offset, value.
    Store = 1,
    /// Writes bytes: offset, bytes.
    Write = 2,
    /// Orders what comes before it and what comes after it.
    Fence = 3,
    /// Rings the doorbell of the slice.
    Ring = 4,
}

impl Kind {
    /// Returns the kind with this number; None if there is none.
    pub fn new(number: u8) -> Option<Kind> {
        [Kind::Store, Kind::Write, Kind::Fence, Kind::Ring].into_iter().find(|kind| *kind as u8 == number)
    }
}

/// A lane of records in memory that a process and the agent of its host share.
///
/// | offset | holds |
/// |---|---|
/// | 0 | head of the lane, which the agent returns |
/// | 64 | 1 while the agent sleeps and has to be woken after a record |
/// | 4096 | the lane |
#[derive(Clone)]
pub(super) struct LocalLane {
    memory: Region,
}

impl LocalLane {
    /// Size of the memory, bytes.
    pub const SIZE: u64 = 4096 + LANE;
    const ASLEEP: usize = 64;

    /// Returns the lane in `memory`; None if it is too small.
    pub fn new(memory: Region) -> Option<LocalLane> {
        (memory.len() as u64 >= Self::SIZE).then_some(LocalLane { memory })
    }

    pub fn credit(&self) -> Region {
        self.memory.part(0, 8)
    }

    pub fn lane(&self) -> Region {
        self.memory.part(4096, LANE as usize)
    }

    /// Returns the word that is 1 while the agent sleeps.
    pub fn asleep(&self) -> &std::sync::atomic::AtomicU64 {
        self.memory.word(Self::ASLEEP)
    }
}

/// Carries out a record in a window. Returns false if it is none, or if it reaches beyond the window.
pub(super) fn execute(
    kind: Kind,
    record: &ntbring_memory::InWindow,
    at: usize,
    len: usize,
    window: &OutWindow,
) -> bool {
    let offset = |least: usize| -> Option<usize> {
        let bytes = len.checked_sub(OFFSET).filter(|&bytes| bytes >= least)?;
        let mut number = [0; OFFSET];
        record.read(at, &mut number);
        let offset = usize::try_from(u64::from_le_bytes(number)).ok()?;
        offset.checked_add(bytes).filter(|&end| end <= window.len()).map(|_| offset)
    };
    match kind {
        Kind::Fence | Kind::Ring => {
            window.fence();
            true
        }
        Kind::Write => offset(0).is_some_and(|offset| {
            window.write(offset, record.foreign(at + OFFSET, len - OFFSET));
            true
        }),
        Kind::Store => offset(8).filter(|offset| offset % 8 == 0 && len == OFFSET + 8).is_some_and(|offset| {
            let mut value = [0; 8];
            record.read(at + OFFSET, &mut value);
            window.store(offset, u64::from_le_bytes(value));
            true
        }),
    }
}
