//! The handle that a process in the ring holds.
//!
//! | file | holds |
//! |---|---|
//! | `adapters` | the process's access to its host's ports and links |
//! | `peers` | the job's processes: ids, liveness, addresses, kernel copies |
//! | `processors` | ranks and cores of this machine |
//! | `shared` | the memory that the host's processes share |
//! | `member` | the handle, which consists of these |
//! | `direct`, `direct_lanes` | lanes between ranks whose hosts are not neighbours, past the hosts between; their memory |
//! | `exposures` | memory of this process that neighbours write through the links |
//! | `writer` | writing memory of processes on neighbouring hosts |
//! | `failures` | failures as the process observes them |

mod adapters;
mod direct;
mod direct_lanes;
mod exposures;
mod failures;
mod member;
mod peers;
mod processors;
mod shared;
mod writer;

pub use direct::DirectLane;
pub use exposures::HeldSegment;
pub use member::Membership;
pub use writer::Writer;

pub(crate) use adapters::Adapters;
pub(crate) use direct_lanes::DirectLanes;
pub(crate) use member::Limits;
pub(crate) use peers::Peers;
pub(crate) use processors::Processors;
pub(crate) use shared::Shared;
