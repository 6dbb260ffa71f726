//! Services among the processes of one *host*, that is of one kernel: these processes can map each other's memory, wake
//! each other and see each other die. Nothing in this crate crosses a link.
//!
//! | module | holds |
//! |---|---|
//! | `memory_file` | shared memory without a name in the file system: creating it, opening another process's |
//! | `file_name` | names of memory files, for hosts that have nothing in common but a directory |
//! | `host_memory` | memory that all processes of a host share |
//! | `file_tag` | the kinds of memory files, for tools |
//! | `segment`, `window_lock` | memory of one process that other processes map, with its locks |
//! | `allocator` | memory that the C library keeps for reuse |
//! | `resident` | pages of this process that have contents |
//! | `mailbox`, `stats_page` | messages between processes of different jobs; counters for tools |
//! | `open_files` | memory files that processes hold open |
//! | `running` | discovery of the hosts and processes of running jobs, for tools |
//! | `futex`, `barrier` | sleeping and waking; an asymmetric memory barrier whose cost is the sleeper's |
//! | `backoff` | exponential back-off of waits without a doorbell |
//! | `watch` | failure detector for processes of the machine: pidfds |
//! | `sidecar` | a process beside this one that outlives it |
//! | `kernel_copy` | kernel copies between processes (CMA) |
//! | `machine` | identity of the machine and process namespace, and the place of a process |
//! | `cores`, `sessions`, `cgroup`, `memory_limit` | processors and memory that the host grants |
//! | [`settings`] | settings of these services |
//! | `thread`, `clock` | background threads; the monotonic clock |
//!
//! A memory file has no name, so the kernel frees it when the last process that maps it has ended, however it ended.
//! Other processes of the same user open it through `/proc/PID/fd`, which the kernel refuses to other users.

mod allocator;
mod backoff;
pub mod barrier;
mod cgroup;
pub mod clock;
pub mod cores;
mod error;
mod file_name;
mod file_tag;
pub mod futex;
mod host_memory;
mod kernel_copy;
mod machine;
mod mailbox;
mod memory_file;
mod memory_limit;
mod open_files;
mod resident;
mod running;
mod segment;
pub mod sessions;
pub mod settings;
pub mod sidecar;
mod stats_page;
pub mod thread;
mod watch;
mod window_lock;

pub use allocator::keep_freed_memory;
pub use backoff::backoff;
pub use error::HostError;
pub use file_name::FileName;
pub use file_tag::{FileKind, FileTag};
pub use host_memory::HostMemory;
pub use kernel_copy::KernelCopy;
pub use machine::{host_name, machine, Place};
pub use mailbox::{Mailbox, NoteReader, NOTE_MAX};
pub use memory_file::{check_space, size_of, FileAddress, MemoryFile, HEADER, MEMFD, PAGE};
pub use open_files::look_through;
pub use running::{RunningHostMemory, RunningProcess};
pub use segment::{Segment, SegmentAddress};
pub use settings::HostSettings;
pub use stats_page::{Posted, StatsPage};
pub use watch::Watch;
