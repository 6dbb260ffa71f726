//! Plan of the measurement: methods, sizes and durations.

use ntbring_endpoint::Settings;
use ntbring_zerocopy::table::{EAGER_MAX, PACKED_MAX, SPLIT_COPY};
use ntbring_zerocopy::{SingleCopy, SplitCopy, LONG_HEADER, SHORT_HEADER};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Transfer method of a message, and the state of its receiver, which waits or is late. At a late receiver an eager
/// message is unexpected: it is stored in a buffer and copied once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Eager: header and payload in one entry.
    Packed,
    /// Packed, to a late receiver.
    PackedLate,
    /// Chunked eager: the header, then the payload in chunks.
    Chunked,
    /// Chunked, to a late receiver.
    ChunkedLate,
    /// Rendezvous, streamed through the lane.
    Streamed,
    /// Rendezvous, copied by the receiver.
    Single,
    /// Rendezvous, copied by both sides.
    Both,
}

impl Method {
    /// All methods.
    pub const ALL: [Method; 7] = [
        Method::Packed,
        Method::PackedLate,
        Method::Chunked,
        Method::ChunkedLate,
        Method::Streamed,
        Method::Single,
        Method::Both,
    ];

    /// Returns the index in [`ends`] of the ring that this method uses.
    pub(super) fn end(self) -> usize {
        match self {
            Method::Packed | Method::PackedLate => 0,
            Method::Chunked | Method::ChunkedLate | Method::Streamed => 1,
            Method::Single => 2,
            Method::Both => 3,
        }
    }

    /// Returns true for rendezvous methods.
    pub(super) fn is_offered(self) -> bool {
        matches!(self, Method::Streamed | Method::Single | Method::Both)
    }

    /// Returns true if the receiver is late.
    pub(super) fn is_late(self) -> bool {
        matches!(self, Method::PackedLate | Method::ChunkedLate)
    }

    /// Returns the size in bytes of the netmod's header of such a message.
    pub(super) fn header(self) -> usize {
        match self {
            Method::Packed | Method::PackedLate => SHORT_HEADER,
            _ => LONG_HEADER,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Method::Packed => "packed",
            Method::PackedLate => "packed, late",
            Method::Chunked => "chunked",
            Method::ChunkedLate => "chunked, late",
            Method::Streamed => "streamed",
            Method::Single => "single copy",
            Method::Both => "both copy",
        })
    }
}

/// Returns the settings of the measured rings, one for each group of methods. The settings that determine the method
/// are fixed; all others are the user's.
pub(super) fn ends(user: &Settings) -> [Settings; 4] {
    let eager = user.clone().with(|s| {
        s.limits.packed_max = PACKED_MAX.most as usize;
        s.limits.eager_max = EAGER_MAX.most as usize;
        s.limits.single_copy = SingleCopy::Never;
        s.limits.split_copy = SplitCopy::Never;
    });
    let chunked = eager.clone().with(|s| s.limits.packed_max = 0);
    let single = chunked.clone().with(|s| s.limits.single_copy = SingleCopy::Above(0));
    let both = single.clone().with(|s| s.limits.split_copy = SplitCopy::From(SPLIT_COPY.least));
    [eager, chunked, single, both]
}

/// Amount of measurement.
pub(super) struct Effort {
    /// Payload sizes in bytes, in ascending order.
    pub sizes: &'static [usize],
    /// Number of rounds; each round measures everything once.
    pub rounds: usize,
    /// Number of batches of one method and size in a round.
    pub batches: usize,
    /// Intended duration of a batch.
    pub batch: Duration,
}

const K: usize = 1 << 10;

/// Largest payload of all plans in bytes.
pub(super) const LARGEST: usize = K * K;

impl Effort {
    /// Returns the effort of a quick or a full measurement.
    pub fn new(quick: bool) -> Effort {
        match quick {
            true => Effort {
                sizes: &[256, K, 2 * K, 4 * K, 6 * K, 8 * K, 12 * K, 16 * K, 32 * K, 64 * K, 128 * K, 256 * K, 512 * K],
                rounds: 3,
                batches: 5,
                batch: Duration::from_micros(1000),
            },
            false => Effort {
                sizes: &[
                    64,
                    256,
                    K,
                    1536,
                    2 * K,
                    3 * K,
                    4 * K,
                    5 * K,
                    6 * K,
                    7 * K,
                    8 * K,
                    10 * K,
                    12 * K,
                    14 * K,
                    16 * K,
                    24 * K,
                    32 * K,
                    48 * K,
                    64 * K,
                    96 * K,
                    128 * K,
                    192 * K,
                    256 * K,
                    384 * K,
                    512 * K,
                    LARGEST,
                ],
                rounds: 5,
                batches: 9,
                batch: Duration::from_micros(2000),
            },
        }
    }
}

/// Smallest payload in bytes of which each side can copy a half: the halves are divided at a page boundary.
const TWO_PAGES: usize = 8 * K;

/// Returns true if a payload can be sent by this method. `packed_max` is the largest size in bytes of header and
/// payload in one entry; `reached` is true if the kernel can copy.
pub(super) fn is_possible(way: Method, bytes: usize, packed_max: usize, reached: bool) -> bool {
    match way {
        Method::Packed | Method::PackedLate => bytes + LONG_HEADER <= packed_max,
        Method::Chunked | Method::ChunkedLate => bytes + LONG_HEADER <= EAGER_MAX.most as usize,
        Method::Streamed => true,
        Method::Single => reached,
        Method::Both => reached && bytes >= TWO_PAGES,
    }
}
