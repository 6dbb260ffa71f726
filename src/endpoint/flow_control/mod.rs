//! Flow control: limits the bytes of unexpected messages that each sender may have at a receiver.
//!
//! ```text
//!   sender                                          receiver
//!   |                                                 |
//!   | charged += cost ------------ message ---------> |  matched at once, or kept as unexpected
//!   |                                                 |  consumed += cost once it is no longer kept, in either case
//!   | <- CREDIT allowed = consumed + share ---------- |  once per quarter of a share
//!   |                                                 |
//!   | charged + cost > allowed: held                  |
//!   | ---------------------------- STALLED ---------> |  credit for consumed bytes is sent at once; if there are
//!   |                                                 |  none, and a receive waits for this sender: beyond the share
//! ```
//!
//! A STALLED that has crossed a CREDIT is answered by that CREDIT: a sender that still holds messages after it has
//! received the CREDIT sends STALLED again.
//!
//! Only messages that are matched with receives are charged. Rendezvous answers, acknowledgements and one-sided
//! operations never wait for credit, and overtake messages that do.
//!
//! Ranks that all send and hold messages for each other, while none of them receives, would deadlock. Therefore
//! STALLED names the rank at which it began (`origin`), and a receiver that is itself stalled passes it on to the
//! ranks that it waits for. When it returns to its origin there is a cycle, and the origin grants more than the
//! share. A rank that stalls again sends STALLED with the next number, because the ranks on the path of the previous
//! one may not have been stalled at that time.

mod credit_policy;
mod credits;

pub use credit_policy::CreditPolicy;
pub use credits::{Answer, Credits};
