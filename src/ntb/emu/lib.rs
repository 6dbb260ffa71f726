//! The emulated ring: hosts are groups of processes of one machine, and the memory that a bridge would make reachable is
//! a memory file without a name.
//!
//! | file | holds |
//! |---|---|
//! | `layout` | the layout of a host's memory file |
//! | `host` | a host, and its ports |
//! | `running` | the hosts of running jobs, found from outside; taking their links down and up |

mod host;
mod layout;
mod running;

pub use host::{EmuHost, EmuPort, ForeignBell};
pub use layout::MemoryLayout;
pub use running::{Introduction, RunningHost};
