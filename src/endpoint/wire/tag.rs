//! The kinds of entries, and the contents of their tags.

use super::parts::Head;
use ntbring_queue::{LINE, META_MAX, TAG};
use ntbring_ring::relay::{Route, ROUTED};

/// A whole message.
pub const MESSAGE: u8 = 1;
/// The header of a message whose payload follows in chunks.
pub const BEGIN: u8 = 2;
/// A chunk of a payload.
pub const CHUNK: u8 = 3;
/// The header of a message whose payload the receiver will request.
pub const RTS: u8 = 4;
/// A request of the receiver about a payload that was offered.
pub const CTS: u8 = 5;
/// The requested payload follows in chunks.
pub const DATA: u8 = 6;
/// The sender has copied its part of a payload, or could not.
pub const FIN: u8 = 7;
/// A payload that was offered is not needed any more.
pub const TAKEN: u8 = 8;
/// A connection message between processes without a common communicator.
pub const DPM: u8 = 11;
/// The credit for unexpected messages.
pub const CREDIT: u8 = 12;
/// The sender's credit is used up, and some of its messages have to wait.
pub const STALLED: u8 = 13;
/// The last entry of its sender that is relayed: a lane past the hosts between has the later ones.
pub const DIRECT: u8 = 14;
/// Flag: the entry has an extension.
pub const EXTENDED: u8 = 0x20;

pub const EXTENSION: usize = 8;
pub const WORDS_MAX: usize = 4;
/// Maximum number of bytes before MPICH's header, or a chunk's payload: the rest of an entry's first line.
pub const PREFIX_MAX: usize = LINE - TAG;
const _: () = assert!(Route::LEN + EXTENSION + 8 * WORDS_MAX <= PREFIX_MAX && STREAMS <= APART as usize);
/// Flag in a `CHUNK`'s meta: the payload begins at the start of a line.
pub const APART: u16 = 0x10;
/// Smallest chunk in bytes for which that is worth the rest of the first line: processors copy much faster to the start
/// of a line. Checked lanes copy from elsewhere and gain nothing; they lose no more than that line.
pub const APART_MIN: usize = 1024;
/// Handler numbers are less than this.
pub const HANDLERS: u16 = 64;
/// Maximum number of streams that one rank may have open to another.
pub const STREAMS: usize = 16;

/// Maximum number of bytes of a payload.
pub const MOST: u64 = i64::MAX as u64;
const HEADER_WORDS_MAX: usize = (META_MAX >> 6) as usize;

/// Returns the contents of the tag of a message without an extension: its description, and the bytes of its header.
#[inline]
pub fn plain(meta: u16) -> (Head, usize) {
    (Head { handler: meta & (HANDLERS - 1) }, (meta >> 6) as usize * 8)
}

/// Returns the tag's `meta` for a message that needs no extension; None if it needs one.
#[inline]
pub fn plain_meta(head: Head, header: usize) -> Option<u16> {
    let plain = header.is_multiple_of(8) && header / 8 <= HEADER_WORDS_MAX;
    plain.then_some(head.handler | ((header / 8) as u16) << 6)
}

/// Returns the contents of a chunk's meta: its stream, if any, and the offset of its payload, which is `at` unless the
/// payload begins at the start of a line.
#[inline(always)]
pub fn chunk(meta: u16, at: usize) -> (u16, usize) {
    (meta & !APART, if meta & APART != 0 { PREFIX_MAX } else { at })
}

/// Returns the stream of a chunk, and the offset of its payload, as its tag describes it; `routed` if it was relayed.
/// None if it is no valid chunk.
#[inline(always)]
pub fn plain_chunk(kind: u8, len: usize, meta: u16, routed: bool) -> Option<(u8, usize)> {
    let (wanted, at) = if routed { (CHUNK | ROUTED, Route::LEN) } else { (CHUNK, 0) };
    let (stream, at) = chunk(meta, at);
    (kind == wanted && (stream as usize) < STREAMS && len > at).then_some((stream as u8, at))
}

/// Number of bytes of a header that [`tag_of`] needs.
pub const TAG_END: usize = 8;

/// Returns the tag in a header of the application, for the timeline: its bytes 4 to 7 (contract of the C ABI). Headers
/// of other handlers have something else there.
#[inline]
pub fn tag_of(header: &[u8]) -> i32 {
    let bytes = header.get(4..TAG_END).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, i32::from_ne_bytes)
}
