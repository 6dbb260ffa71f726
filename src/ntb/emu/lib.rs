//! The backend of the emulated ring: hosts are groups of processes of one machine, and the memory that a bridge would
//! make accessible is a memory file.
//!
//! | file | holds |
//! |---|---|
//! | `layout` | the layout of a host's window file |
//! | `address` | the addresses of window files, and opening them |
//! | `host` | the backend, hosts and their ports |
//! | `running` | discovery of the hosts of running jobs, for tools, which can take their links down and up |

mod address;
mod host;
mod layout;
mod running;

pub use address::{address_of, file_of};
pub use host::{EmuHost, EmuPort, Emulated};
pub use layout::MemoryLayout;
pub use running::RunningHost;
