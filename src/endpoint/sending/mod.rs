//! Sending: one flow to each peer, and the packets that wait in it for room in its lane or for credit.
//!
//! | file | holds |
//! |---|---|
//! | `message` | a message to be sent, and the outcome of sending it |
//! | `outbox`, `lanes` | the outgoing lanes, and retransmission in them |
//! | `line` | the queue of packets and streams for one lane |
//! | `allowance` | the credit that one receiver has given |
//! | `flow` | all traffic to one peer |
//! | `outbound` | all flows of a rank |
//! | `plain` | the fast path of small messages |
//! | `pieces` | the fast path of eager messages in chunks |
//! | `held` | messages that wait for credit, and the cancellation of messages |
//! | `record` | messages in the timeline |
//! | `linger` | the thread that retransmits for a rank that has left |
//! | `attach` | the lane of each peer's flow; peers that come and go |

mod allowance;
mod attach;
mod flow;
mod held;
mod lanes;
mod line;
mod linger;
mod message;
mod outbound;
mod outbox;
mod pieces;
mod plain;
mod record;

pub use line::TURN_BYTES;
pub use message::{Message, Sent};
pub use outbound::Outbound;
