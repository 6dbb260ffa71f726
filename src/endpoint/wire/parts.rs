//! What packets of some kinds are about.

/// A payload that is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The sender's number for it.
    pub id: u32,
    /// Where it lies in the sender's memory; 0 if it does not lie there in one piece.
    pub address: u64,
    /// Bytes, at least one.
    pub total: u64,
}

/// What a receiver asks of the sender of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// To send the first `len` bytes in pieces; more if it cannot end there.
    Stream {
        /// How many, at least one.
        len: u64,
    },
    /// To copy `len` bytes from `from` on to `address` in the receiver's memory.
    Push {
        /// Where they go, not 0.
        address: u64,
        /// Where they begin in the payload.
        from: u64,
        /// How many, at least one.
        len: u64,
    },
}
