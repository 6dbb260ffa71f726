//! Results of polling: events, and packets that have arrived in a lane.

use crate::wire::{Head, Packet};
use ntbring_memory::{Address, ForeignRoom};
use ntbring_ring::PeerLoss;

/// An event that a poll returns.
pub enum Event {
    /// A packet has arrived.
    Arrival(Arrival),
    /// The payload of a pending message has been sent; its buffer may be reused.
    Sent {
        /// The cookie given when the message was sent.
        cookie: usize,
        /// The handler given when the message was sent.
        handler: u16,
    },
    /// The receiver has the payload of a rendezvous offer (RTS); its buffer may be reused.
    Taken {
        /// The cookie given with the offer.
        cookie: usize,
    },
    /// The payload of an accepted offer is complete in its receive buffer.
    Fetched {
        /// The cookie given when the offer was accepted (CTS).
        cookie: usize,
    },
    /// A sender holds messages back because its flow-control credit is used up. If a receive waits for one of them,
    /// the caller must call [`crate::Endpoint::allow_more`].
    Stalled {
        /// The stalled sender.
        src: u32,
    },
    /// A rank has become permanently unreachable: operations that wait for it, or that are started with it, never
    /// complete.
    Lost(PeerLoss),
    /// A one-sided operation on a remote segment is complete at the target and here.
    Remote {
        /// The cookie given when the operation began.
        cookie: usize,
    },
}

/// A packet that has arrived. Its bytes stay valid in the lane until its token is released.
pub struct Arrival {
    /// The sending rank.
    pub src: u32,
    /// The parsed packet.
    pub packet: Packet,
    /// Address of MPICH's header, or of a chunk's payload.
    pub header: Address,
    /// For a chunk: the cookie given when the message began.
    pub cookie: usize,
    /// True for the last chunk of a message.
    pub last: bool,
    /// For a chunk: where it goes.
    pub(crate) target: Target,
    /// Offset in bytes of `header` in the lane.
    pub(crate) offset: usize,
    /// The token to release when the bytes are no longer needed.
    pub token: Token,
}

impl Arrival {
    /// Returns the bytes of payload if this is a chunk, else 0.
    pub(crate) fn piece(&self) -> usize {
        match self.packet {
            Packet::Chunk { payload, .. } => payload,
            _ => 0,
        }
    }
}

/// Where a chunk goes.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// To the caller of the poll.
    Caller,
    /// To the destination of the fetch with this id.
    Fetch(u32),
    /// Into this buffer: the rest of that of an eager message, or, for one chunk, its part.
    Room(ForeignRoom<'static>),
}

impl Target {
    /// Returns the target of a chunk of `len` bytes, and that of the chunks behind it.
    #[inline(always)]
    pub fn split(self, len: usize) -> (Target, Target) {
        match self {
            Target::Room(room) => {
                let len = len.min(room.len());
                (Target::Room(room.part(0, len)), Target::Room(room.part(len, room.len() - len)))
            }
            other => (other, other),
        }
    }
}

/// The next arrival of a poll.
pub(crate) enum Polled {
    /// A chunk whose destination is known.
    Piece(Piece),
    /// Any other packet.
    Arrival(Arrival),
}

/// A chunk of a payload whose destination is known.
pub(crate) struct Piece {
    /// Index of the lane.
    pub lane: usize,
    /// Offset in bytes of the payload in the lane.
    pub offset: usize,
    /// Length in bytes.
    pub len: usize,
    /// Where it goes.
    pub target: Target,
    /// The cookie of an eager message.
    pub cookie: usize,
    /// True for the last chunk.
    pub last: bool,
}

/// A message that fits one lane entry and was sent by the rank at the other end of the lane. Nearly all messages are
/// of this kind, so the struct has as few words as possible.
pub struct Plain {
    /// The sending rank.
    pub src: u32,
    /// The head of the packet.
    pub head: Head,
    /// Bytes of MPICH's header.
    pub header: usize,
    /// Bytes of payload, directly behind the header.
    pub payload: usize,
    /// Address of the header.
    pub address: *mut u8,
    /// Offset in bytes of the header in the lane.
    pub(crate) offset: usize,
    /// Index of the lane; it is released as with [`Token`].
    pub lane: usize,
    /// True if another entry is already in the lane.
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
            target: Target::Caller,
            offset: p.offset,
            token: Token { lane: p.lane, begun: None },
        }
    }
}

/// The result of looking at all lanes.
pub enum Look {
    /// All lanes are empty.
    Nothing,
    /// All lanes are empty, and the periodic work of the progress loop is due.
    Vain {
        /// True if all lanes were looked at, including rarely used (cold) ones.
        thorough: bool,
    },
    /// A message in a single entry.
    Plain(Plain),
    /// A packet of another kind; a full poll handles it.
    Other,
}

/// A receipt for lane space: it must be given back when the arrival has been handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Index of the lane.
    pub lane: usize,
    /// The stream (source rank, stream number) that began with this arrival, if any.
    pub begun: Option<(u32, u8)>,
}

impl Token {
    /// The token of an arrival that occupies no lane space.
    pub const NOTHING: Token = Token { lane: usize::MAX, begun: None };
}
