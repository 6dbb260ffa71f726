//! The packets that ranks exchange.

use super::parts::{DpmId, DpmKind, Head, Offer, Request};
use ntbring_rma::Reply;

/// An entry, valid by construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A whole message.
    Message {
        /// About it.
        head: Head,
        /// Bytes of MPICH's header.
        header: usize,
        /// Bytes of the payload.
        payload: usize,
    },
    /// The beginning of a message in pieces.
    Begin {
        /// About it.
        head: Head,
        /// Bytes of MPICH's header.
        header: usize,
        /// The stream that its pieces will name.
        stream: u8,
        /// Bytes of the payload, at least one.
        total: u64,
    },
    /// A piece.
    Chunk {
        /// Its stream.
        stream: u8,
        /// Bytes, at least one.
        payload: usize,
    },
    /// A message whose payload stays with the sender until it is accepted.
    Rts {
        /// About it.
        head: Head,
        /// Bytes of MPICH's header.
        header: usize,
        /// The payload that is offered.
        offer: Offer,
    },
    /// The answer to an offer, if the receiver needs the sender for it.
    Cts {
        /// The sender's number for what it has offered.
        offer: u32,
        /// The receiver's number for what it fetches.
        fetch: u32,
        /// The task of the sender.
        request: Request,
    },
    /// The beginning of a payload that was accepted, in pieces.
    Data {
        /// As accepted.
        fetch: u32,
        /// The stream that its pieces will name.
        stream: u8,
        /// Bytes, at least one.
        total: u64,
    },
    /// The sender has copied its part, or could not.
    Fin {
        /// As accepted.
        fetch: u32,
        /// True if it succeeded.
        ok: bool,
    },
    /// The receiver has all it wants of an offer.
    Taken {
        /// As offered.
        offer: u32,
    },
    /// The result of an operation on a segment.
    Served {
        /// Which request, and how it went.
        reply: Reply,
        /// Bytes that were asked for.
        payload: usize,
    },
    /// Bytes that the receiver of this packet may have sent to its sender in all.
    Credit {
        /// Number of bytes, as `flow_control` counts them.
        allowed: u64,
    },
    /// The sender of this packet waits for credit.
    Stalled {
        /// The rank that has said so first.
        origin: u32,
        /// Number of times that the rank has asked.
        number: u32,
        /// The last credit that the sender of this packet had heard of.
        allowed: u64,
    },
    /// The parts of a connection message.
    Dpm {
        /// Which question it is, or belongs to.
        what: DpmId,
        /// Which of the two sides says it.
        kind: DpmKind,
        /// Bytes.
        payload: usize,
    },
}
