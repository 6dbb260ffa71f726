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
        /// The receiver has found this to be faster than the kernel's copies: what need not be offered to others need not be
        /// offered to it.
        gladly: bool,
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

/// Which question a greeting is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// What it was asked under.
    pub tag: u32,
    /// Which of the asking process's questions it is.
    pub number: u32,
}

/// What a greeting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum GreetingKind {
    /// Of one who connects.
    Question = 1,
    /// Of one who accepts.
    Answer = 2,
    /// Of one who has waited for an answer long enough.
    Withdrawal = 3,
}

impl GreetingKind {
    /// From its number; None if it is nobody's.
    pub fn parse(number: u16) -> Option<GreetingKind> {
        [Self::Question, Self::Answer, Self::Withdrawal].into_iter().find(|&kind| kind as u16 == number)
    }
}
