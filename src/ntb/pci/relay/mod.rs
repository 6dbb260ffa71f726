//! Relays: the agent writes windows for processes that cannot reach them themselves.
//!
//! A process cannot map the window of a neighbour if the kernel offers no file of it, or if it must not reach the slices
//! of other jobs; and nothing maps the window of a host that is several links away. Such a process puts its writes as
//! *records* into a lane ([`RecordWriter`]), and the thread of the agent ([`RelayThread`]) carries them out, in order: in
//! the window of the neighbour, or by putting them into a lane in that window, from which the neighbour's agent takes
//! them.

mod local_slice;
mod outlet;
mod record;
mod thread;
mod writer;

pub use local_slice::LocalSlice;
pub use outlet::{Inlet, Outlet, Target, DRAIN};
pub use record::LANE;
pub use thread::RelayThread;
pub use writer::{RecordLane, RecordWriter, RelayedGrant};
