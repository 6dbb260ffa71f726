//! Rendezvous: payloads that a sender offers (RTS) and the receiver fetches once it knows their destination.
//!
//! ```text
//! sender                      receiver
//!   | -- RTS header, address ---> |   matched: ntbring_accept
//!   |                             |
//!   |                             |   single: copies it all       \
//!   | <---------- TAKEN --------- |                               /  one message back
//!   |                             |
//!   | <- CTS push second half ----|   both (pipelined): copies the first half
//!   | copies the second half      |   meanwhile
//!   | -- FIN -------------------> |
//!   | <---------- TAKEN --------- |
//!   |                             |
//!   | <- CTS stream ------------- |   streamed (CTS)
//!   | -- DATA, CHUNK, CHUNK ... ->|   each chunk is copied straight from the lane to its destination
//! ```
//!
//! If the kernel refuses a copy, the whole payload is streamed instead.

mod actions;
mod fetch;
mod observe;
mod offers;
mod preferences;

#[cfg(test)]
mod tests;

pub use actions::{Accepted, Action, Destination, Next};
pub use offers::Offers;
