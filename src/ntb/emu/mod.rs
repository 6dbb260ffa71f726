//! The emulated NTB: hosts are groups of processes of one machine, and what a bridge would make
//! reachable of a host's memory is a file without a name in a memory file system.
//!
//! | file | holds |
//! |---|---|
//! | `memory` | a host's memory file: creating it, opening a neighbour's |
//! | `registers` | the register page: scratchpads, doorbells, interrupt vectors |
//! | `group` | the memory limit that a process is killed at |
//! | `host` | a host, and its ports |
//! | `barrier` | what lets a busy exchange do without fences |
//! | `place` | the machine and process namespace that a process is in |
//! | `reach` | copies between processes that the kernel makes |
//! | `futex` | the system call that stands for an interrupt |
//! | `mailbox` | notes between processes that meet outside the ring |
//! | `bulletin` | what a process says of itself to whoever looks from outside |
//! | `segment` | memory of one process that others map, with a lock |
//! | `holders` | the lock of a window, in each of its segments |
//! | `running` | hosts and processes found from outside, and their links taken down and up |
//! | `watch` | evidence that a process has died |
//!
//! The file has no name, so nothing is left when the last process that maps it is gone, however
//! it went. Other processes of the same user reach it through `/proc/PID/fd`, which the kernel
//! refuses to everybody else.

mod barrier;
mod bulletin;
mod futex;
mod group;
mod holders;
mod host;
mod mailbox;
mod memory;
mod place;
mod reach;
mod registers;
mod running;
mod segment;
mod watch;

pub use bulletin::{Bulletin, Posted};
pub use host::{EmuHost, EmuPort, ForeignBell};
pub use mailbox::Mailbox;
pub use memory::{check_space, size_of, HostAddress, MemoryLayout};
pub use place::place;
pub use reach::Reach;
pub use running::{Introduction, RunningHost, RunningProcess};
pub use segment::{Segment, SegmentAddress};
pub use watch::Watch;
