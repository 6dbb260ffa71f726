//! A message to be sent, and the outcome of sending it.

use crate::wire::Head;
use ntbring_zerocopy::Payload;

/// A message to be sent.
pub struct Message<'a> {
    /// The destination rank.
    pub dest: u32,
    /// Its description.
    pub head: Head,
    /// MPICH's header; copied if it has to wait.
    pub header: &'a [u8],
    /// Its payload; left where it is if it has to wait.
    pub payload: Payload,
    /// Returned in [`crate::Event::Sent`].
    pub cookie: usize,
}

/// The outcome of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The payload is no longer needed.
    Done,
    /// The payload is needed until an event with its cookie.
    Pending,
}

/// A payload that is no longer needed.
#[derive(Clone, Copy)]
pub struct Released {
    pub cookie: usize,
    pub handler: u16,
    /// True if it had been offered.
    pub offered: bool,
}
