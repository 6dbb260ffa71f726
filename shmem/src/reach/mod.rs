//! Access to the symmetric memory of another PE: by loads, stores and instructions of the processor if it is mapped
//! (near), otherwise by requests that its host carries out (far). Puts to far PEs whose memory can at least be written are
//! stores (written).
//!
//! Operations of one context on one PE happen in the order of the calls: near ones since processors keep the order of
//! stores that a release fence separates, far ones since requests to a host stay in order, and stores are made in their
//! turn.

mod access;
mod copy;
mod far;
mod link;
mod mailboxes;
mod messages;
mod near;
mod operation;
mod order;
mod pending;
mod pes;
mod sleepers;
mod transfers;
mod waiting;
mod written;

pub use access::{compare_swap, compare_swap_later, fetch, fetch_later, get, operate, put, set, store};
pub use copy::copy;
pub use link::{Far, Link};
pub use mailboxes::GROUP;
pub use near::{AtomicOp, Word};
pub use operation::{Mode, Operation};
pub use order::{gather, quiet, quiet_all};
pub use pending::{Pending, CONTEXTS};
pub use pes::Pes;
pub use sleepers::Sleepers;
pub use waiting::{has_failed, until};
