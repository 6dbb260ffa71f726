//! Parts of packets of some kinds.

/// The description of a message, beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Head {
    /// The number of its handler.
    pub handler: u16,
}

/// The description of an offered payload (RTS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Number of the offer at its sender.
    pub id: u32,
    /// Address of the payload in the sender's memory; 0 if it is not contiguous.
    pub address: u64,
    /// Size in bytes, at least one.
    pub total: u64,
}

/// The request of a receiver to the sender of an offer (CTS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Send the first `len` bytes in chunks; more if the payload cannot be split there.
    Stream {
        /// Number of bytes, at least one.
        len: u64,
        /// True if the receiver has measured that lanes are faster than kernel copies: the sender may then send it
        /// eagerly the payloads that it would offer to other ranks.
        prefer_eager: bool,
    },
    /// Copy `len` bytes of the payload, from offset `from` on, to `address` in the receiver's memory.
    Push {
        /// Destination address, not 0.
        address: u64,
        /// Offset in bytes in the payload.
        from: u64,
        /// Number of bytes, at least one.
        len: u64,
    },
}

/// Identification of the request that a connection message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DpmId {
    /// Tag of the request.
    pub tag: u32,
    /// Number of the request at the requesting process.
    pub number: u32,
}

/// The kind of a connection message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum DpmKind {
    /// A request of a process that connects.
    Request = 1,
    /// The reply of a process that accepts.
    Reply = 2,
    /// Cancellation of a request that has got no reply in time.
    Withdrawal = 3,
}

impl DpmKind {
    /// Returns the kind with this number, if there is one.
    pub fn parse(number: u16) -> Option<DpmKind> {
        [Self::Request, Self::Reply, Self::Withdrawal].into_iter().find(|&kind| kind as u16 == number)
    }
}
