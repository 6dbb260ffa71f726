//! The handle that a process in the ring holds.
//!
//! | file | holds |
//! |---|---|
//! | `adapters` | the process's access to its host's ports and links |
//! | `peers` | the job's processes: ids, liveness, addresses, kernel copies |
//! | `processors` | ranks and cores of this machine |
//! | `shared` | the memory that the host's processes share |
//! | `member` | the handle, which consists of these |
//! | `failures` | failures as the process observes them |

mod adapters;
mod failures;
mod member;
mod peers;
mod processors;
mod shared;

pub use member::Membership;

pub(crate) use adapters::Adapters;
pub(crate) use member::Limits;
pub(crate) use peers::Peers;
pub(crate) use processors::Processors;
pub(crate) use shared::Shared;
