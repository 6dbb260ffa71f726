//! The packets that ranks exchange.

use super::parts::{DpmId, DpmKind, Head, Offer, Request};
use ntbring_rma::Reply;

/// An entry, valid by construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A whole message.
    Message {
        /// The description of the message.
        head: Head,
        /// Bytes of MPICH's header.
        header: usize,
        /// Bytes of the payload.
        payload: usize,
    },
    /// The beginning of a chunked message.
    Begin {
        /// The description of the message.
        head: Head,
        /// Bytes of MPICH's header.
        header: usize,
        /// The stream that its chunks will name.
        stream: u8,
        /// Bytes of the payload, at least one.
        total: u64,
    },
    /// A chunk.
    Chunk {
        /// Its stream.
        stream: u8,
        /// Bytes, at least one.
        payload: usize,
    },
    /// A message whose payload stays with the sender until it is accepted (RTS).
    Rts {
        /// The description of the message.
        head: Head,
        /// Bytes of MPICH's header.
        header: usize,
        /// The payload that is offered.
        offer: Offer,
    },
    /// The answer to an offer, if the receiver needs the sender for the transfer (CTS).
    Cts {
        /// The sender's number of the offer.
        offer: u32,
        /// The receiver's number of the fetch.
        fetch: u32,
        /// The task of the sender.
        request: Request,
    },
    /// The beginning of an accepted payload that follows in chunks (DATA).
    Data {
        /// The receiver's number of the fetch.
        fetch: u32,
        /// The stream that its chunks will name.
        stream: u8,
        /// Bytes, at least one.
        total: u64,
    },
    /// The sender has copied its part of a payload, or could not (FIN).
    Fin {
        /// The receiver's number of the fetch.
        fetch: u32,
        /// True if it succeeded.
        ok: bool,
    },
    /// The receiver needs no more of an offer.
    Taken {
        /// The sender's number of the offer.
        offer: u32,
    },
    /// The result of an operation on a segment.
    Served {
        /// The number of the request, and its outcome.
        reply: Reply,
        /// Bytes of the result that follow.
        payload: usize,
    },
    /// The total of bytes that the receiver of this packet may send to its sender.
    Credit {
        /// Number of bytes, as `flow_control` counts them.
        allowed: u64,
    },
    /// The sender of this packet waits for credit.
    Stalled {
        /// The rank at which the STALLED began.
        origin: u32,
        /// Number of times that this rank has stalled.
        number: u32,
        /// The latest credit that the sender of this packet has received.
        allowed: u64,
    },
    /// The last packet of its sender that is relayed: the later ones are in a lane past the hosts between.
    Direct,
    /// A connection message.
    Dpm {
        /// The request that the message is, or belongs to.
        what: DpmId,
        /// The kind of the message.
        kind: DpmKind,
        /// Bytes.
        payload: usize,
    },
}
