//! What polls find: events, and what has arrived in a lane.

use super::wire::{Head, Packet};
use ntbring_memory::Address;
use ntbring_ring::Loss;

/// What a poll has found.
pub enum Event {
    /// Something has arrived.
    Arrival(Arrival),
    /// A pending message's payload is not needed any more.
    Sent {
        /// As sent.
        cookie: usize,
        /// As sent.
        handler: u16,
    },
    /// The payload of an offer is not needed any more.
    Taken {
        /// As offered.
        cookie: usize,
    },
    /// The payload of an accepted offer is where it belongs.
    Fetched {
        /// As accepted.
        cookie: usize,
    },
    /// This rank holds messages that it cannot send before others are consumed: does anybody wait for
    /// them? Then [`super::Endpoint::allow_more`].
    Stalled {
        /// Who it is.
        src: u32,
    },
    /// A rank cannot be reached any more: nothing that waits for it, or is begun with it, will ever end.
    Lost(Loss),
    /// An operation on a segment elsewhere has ended, there and here.
    Remote {
        /// As begun.
        cookie: usize,
    },
}

/// Something that has arrived. Its bytes stay where they are until its token is released.
pub struct Arrival {
    /// The rank that sent it.
    pub src: u32,
    /// What it is.
    pub packet: Packet,
    /// Address of MPICH's header, or of a chunk's payload.
    pub header: Address,
    /// A chunk's cookie, as given when the message began.
    pub cookie: usize,
    /// Whether it is the last chunk.
    pub last: bool,
    /// What a chunk is fetched for.
    pub(super) fetch: Option<u32>,
    /// Where `header` points to, in the lane.
    pub(super) offset: usize,
    /// To be released.
    pub token: Token,
}

impl Arrival {
    /// Bytes of the piece of a payload that it is.
    pub(super) fn piece(&self) -> usize {
        match self.packet {
            Packet::Chunk { payload, .. } => payload,
            _ => 0,
        }
    }
}

/// A piece of a payload whose place is known, from the rank whose lane it lies in.
pub(super) struct Piece {
    /// Which lane.
    pub lane: usize,
    /// Where it lies there.
    pub offset: usize,
    /// Bytes.
    pub len: usize,
    /// What it is fetched for.
    pub fetch: u32,
    /// Whether it is the last one.
    pub last: bool,
}

/// A message of one entry, from the rank whose lane it lies in: what nearly all are, in as few
/// words as that takes.
pub struct Plain {
    /// The rank that sent it.
    pub src: u32,
    /// About it.
    pub head: Head,
    /// Bytes of MPICH's header.
    pub header: usize,
    /// Bytes of payload, right behind it.
    pub payload: usize,
    /// Address of the header.
    pub address: *mut u8,
    /// Where it lies in the lane.
    pub(super) offset: usize,
    /// Which lane; to be released as [`Token`] does it.
    pub lane: usize,
    /// Whether another entry is in the lane already.
    pub more: bool,
}

impl From<Plain> for Arrival {
    fn from(p: Plain) -> Arrival {
        Arrival {
            src: p.src,
            packet: Packet::Message { head: p.head, header: p.header, payload: p.payload },
            header: Address(p.address),
            cookie: 0,
            last: false,
            fetch: None,
            offset: p.offset,
            token: Token { lane: p.lane, begun: None },
        }
    }
}

/// What a look at the lanes has found.
pub enum Look {
    /// They are empty.
    Nothing,
    /// They are empty, and it is time for what is done now and then.
    Vain {
        /// All were looked at, cold ones too.
        thorough: bool,
    },
    /// A plain message.
    Plain(Plain),
    /// Something else.
    Other,
}

/// What must be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Which lane.
    pub lane: usize,
    /// The stream that has begun, if one has: source, number.
    pub begun: Option<(u32, u8)>,
}

impl Token {
    /// Of an arrival that takes no lane's space.
    pub const NOTHING: Token = Token { lane: usize::MAX, begun: None };
}
