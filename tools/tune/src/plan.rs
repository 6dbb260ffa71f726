//! What is measured: the ways, the sizes, and how long.

use ntbring_endpoint::Settings;
use ntbring_zerocopy::table::{BOTH_COPY, EAGER_MAX, PACKED_MAX};
use ntbring_zerocopy::{BothCopy, SingleCopy, LONG_HEADER, SHORT_HEADER};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// A way that a message can travel, and whether its receiver was waiting for it. To one that is
/// late, what is not offered comes too soon: it is put by, and copied once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Header and payload in one entry.
    Packed,
    /// That, to a receiver that is late.
    PackedLate,
    /// Header, then payload in pieces.
    Separate,
    /// That, to a receiver that is late.
    SeparateLate,
    /// Offered, and streamed through the lane.
    Streamed,
    /// Offered, and copied by the receiver.
    Single,
    /// Offered, and copied by both sides.
    Both,
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 7] = [
        Method::Packed,
        Method::PackedLate,
        Method::Separate,
        Method::SeparateLate,
        Method::Streamed,
        Method::Single,
        Method::Both,
    ];

    /// Which of [`ends`] it uses.
    pub(super) fn end(self) -> usize {
        match self {
            Method::Packed | Method::PackedLate => 0,
            Method::Separate | Method::SeparateLate | Method::Streamed => 1,
            Method::Single => 2,
            Method::Both => 3,
        }
    }

    /// Whether the payload is offered.
    pub(super) fn is_offered(self) -> bool {
        matches!(self, Method::Streamed | Method::Single | Method::Both)
    }

    /// Whether the receiver is late.
    pub(super) fn is_late(self) -> bool {
        matches!(self, Method::PackedLate | Method::SeparateLate)
    }

    /// Bytes of header that such a message of the netmod has.
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
            Method::Separate => "separate",
            Method::SeparateLate => "separate, late",
            Method::Streamed => "streamed",
            Method::Single => "single copy",
            Method::Both => "both copy",
        })
    }
}

/// The settings of the rings that are measured, one for each group of ways: what decides the way is
/// fixed, all else is as the user has it.
pub(super) fn ends(user: &Settings) -> [Settings; 4] {
    let eager = user.clone().with(|s| {
        s.limits.packed_max = PACKED_MAX.most as usize;
        s.limits.eager_max = EAGER_MAX.most as usize;
        s.limits.single_copy = SingleCopy::Never;
        s.limits.both_copy = BothCopy::Never;
    });
    let separate = eager.clone().with(|s| s.limits.packed_max = 0);
    let single = separate.clone().with(|s| s.limits.single_copy = SingleCopy::Above(0));
    let both = single.clone().with(|s| s.limits.both_copy = BothCopy::From(BOTH_COPY.least));
    [eager, separate, single, both]
}

/// How much is measured.
pub(super) struct Effort {
    /// Payloads, bytes, from small to large.
    pub sizes: &'static [usize],
    /// How often everything is measured, in turn.
    pub rounds: usize,
    /// Batches of one way and size in a round.
    pub batches: usize,
    /// The time that a batch should take.
    pub batch: Duration,
}

const K: usize = 1 << 10;

/// The largest payload of all plans, bytes.
pub(super) const LARGEST: usize = K * K;

impl Effort {
    /// A first look, or more.
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

/// The smallest payload of which each side can copy a half: halves end where a page does.
const TWO_PAGES: usize = 8 * K;

/// Whether a payload can go this way; `packed_max` is the most header and payload that one entry
/// takes, `reached` says whether the kernel can copy.
pub(super) fn is_possible(way: Method, bytes: usize, packed_max: usize, reached: bool) -> bool {
    match way {
        Method::Packed | Method::PackedLate => bytes + LONG_HEADER <= packed_max,
        Method::Separate | Method::SeparateLate => bytes + LONG_HEADER <= EAGER_MAX.most as usize,
        Method::Streamed => true,
        Method::Single => reached,
        Method::Both => reached && bytes >= TWO_PAGES,
    }
}
