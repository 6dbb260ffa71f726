//! The state of one offer, one fetch and one kernel copy.

use ntbring_host::KernelCopy;
use ntbring_memory::{ForeignBytes, ForeignRoom};
use ntbring_zerocopy::copy_tuner::CopyPath;
use ntbring_zerocopy::Payload;
use std::time::Instant;

/// A payload that was offered.
pub struct Exposed {
    pub dest: u32,
    pub payload: Payload,
    pub cookie: usize,
    /// Time of the offer.
    pub since: Instant,
}

/// A payload that was offered and is now sent through a lane.
pub struct Leaving {
    pub dest: u32,
    pub cookie: usize,
    /// Size of the payload.
    pub bytes: u64,
    /// Time of the offer.
    pub since: Instant,
}

/// A payload that this rank fetches.
pub struct Fetch {
    pub src: u32,
    pub offer: u32,
    /// Destination of the payload; None if it is not contiguous.
    pub room: Option<ForeignRoom<'static>>,
    pub size: u64,
    pub cookie: usize,
    /// Bytes that have arrived through the lane.
    pub arrived: u64,
    /// Bytes that this rank copies itself if the kernel copies; the sender copies the others.
    pub mine: u64,
    /// Number of copies still to be made, by either side.
    pub pending: u8,
    pub refused: bool,
    /// True once the payload has begun to arrive through a lane (DATA).
    pub fed: bool,
    /// The copy path that the A/B tuner has chosen; None if there was no choice.
    pub copy_path: Option<CopyPath>,
    /// Time at which this rank has accepted the offer.
    pub since: Instant,
}

impl Fetch {
    pub fn of(offer: u32, src: u32, room: Option<ForeignRoom<'static>>, size: u64, cookie: usize) -> Fetch {
        Fetch {
            src,
            offer,
            room,
            size,
            cookie,
            arrived: 0,
            mine: size,
            pending: 0,
            refused: false,
            fed: false,
            copy_path: None,
            since: Instant::now(),
        }
    }
}

/// A copy in progress.
pub struct Copy {
    pub with: KernelCopy,
    /// Address, in the other process, at which the remaining bytes begin.
    pub address: u64,
    pub what: Part,
}

/// The rest of a copy.
pub enum Part {
    Read { fetch: u32, to: ForeignRoom<'static> },
    Write { dest: u32, fetch: u32, from: ForeignBytes<'static> },
}
