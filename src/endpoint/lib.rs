//! Messages between ranks: sending, receiving, rendezvous, flow control, reliability, waiting.
//!
//! Each part has its own state; its methods take their inputs as arguments and return the actions to be done. Only the
//! coordinator, `endpoint`, knows all parts and passes results from one to the other; no part refers to it. Only
//! `sending` uses other parts: it deposits entries for the connections of `reliable`, and charges messages by the credit
//! policy of `flow_control`.
//!
//! | folder or file | holds |
//! |---|---|
//! | `endpoint` | the coordinator: the calls of the application, and the poll |
//! | `sending` | flows to other ranks: messages are sent, or wait for room or credit |
//! | `receiving` | lanes from other ranks |
//! | `reliable` | reliable connections, end to end, over links that may lose data or go down |
//! | `flow_control` | limits of the unexpected messages of each sender |
//! | `rendezvous` | large payloads, which the receiver fetches |
//! | `onesided` | segments that ranks map into their memory, and operations on those that they cannot map |
//! | `collective` | small allgathers that go round the ring |
//! | `dynamic` | peers that are added later, and connection messages between them |
//! | `waiting` | back-off of waiting ranks, and the lanes that each poll looks at |
//! | `background` | threads beside a rank |
//! | `observation` | counters, statistics and the dump of a rank's state |
//! | `peer_losses` | peers that are lost |
//! | `wire` | the packets that entries of lanes hold |
//! | `arrival` | results of polls |
//! | `bell` | doorbells, reached in several ways |
//! | `progress_thread` | the kind of thread that retransmits while the rank does not poll |
//! | `settings`, `error` | settings and errors |

mod arrival;
mod background;
mod bell;
mod collective;
mod dynamic;
mod endpoint;
mod error;
mod flow_control;
mod observation;
mod onesided;
mod peer_losses;
mod progress_thread;
mod receiving;
pub mod reliable;
mod rendezvous;
mod sending;
pub mod settings;
mod waiting;
pub mod wire;

pub use arrival::{Arrival, Event, Look, Plain, Token};
pub use collective::BLOCK_MAX;
pub use dynamic::DPM_MAX;
pub use endpoint::Endpoint;
pub use error::{EndpointError, Malformed};
pub use observation::{
    Counter, Figures, Histogram, LinkCounter, LinkFigures, Peer, Queues, ReadQueues, Reason, Sizes, State, TimeKind,
    Times, Wait, CLASSES, COUNTERS, LINK_COUNTERS, TIMES,
};
pub use onesided::Operation;
pub use rendezvous::Accepted;
pub use sending::{Message, Sent};
pub use settings::Settings;
pub use waiting::Idle;
