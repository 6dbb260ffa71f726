//! Results of rendezvous that its caller passes on to the sending and receiving parts and to the application.

use crate::arrival::Event;
use crate::wire::Packet;
use ntbring_memory::ForeignRoom;
use ntbring_zerocopy::Payload;

/// A result that the caller has to carry out, in the order of [`super::Offers::next_action`].
pub enum Action {
    /// An entry without payload is sent to a peer.
    Send {
        /// The peer.
        dest: u32,
        /// The entry.
        packet: Packet,
    },
    /// A payload that was offered is streamed to its receiver.
    Feed {
        /// The receiver.
        dest: u32,
        /// The receiver's number for the fetch.
        fetch: u32,
        /// The payload.
        payload: Payload,
        /// The cookie given with the offer.
        cookie: usize,
    },
    /// An event is passed to the application.
    Event(Event),
}

/// The destination of a chunk of a fetch.
#[derive(Clone, Copy, Debug)]
pub enum Destination {
    /// The chunk, or its beginning, is copied there.
    Room(ForeignRoom<'static>),
    /// The application takes this many bytes of the chunk; they are of the fetch with this cookie.
    Shown {
        /// Number of bytes.
        bytes: usize,
        /// The cookie given when the offer was accepted.
        cookie: usize,
    },
    /// The chunk lies behind the accepted bytes.
    Nowhere,
}

/// The state of an offer after it was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// The payload has arrived.
    Done,
    /// The payload is under way; an event with the cookie reports its arrival.
    Pending,
}

/// The next step for an offer that was accepted, after the actions were carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// There is nothing to fetch.
    Nothing,
    /// The first part of a kernel copy is made at once ([`super::Offers::copy_first`]).
    Copy,
    /// An event reports the arrival of the payload.
    Wait,
}
