//! A record of what ranks do at which time, in bounded memory, and the trace that is made of it.
//!
//! While a timeline is on, each process records events in a file of its own, its *part*, which it maps: so the events
//! outlive a process that is killed. A part is a ring of blocks. Each thread fills a block of its own, and when that is
//! full, claims the oldest block that no other thread is filling; the events that were in it are lost, and counted.
//! So threads share the bounded space without waiting for each other, and an event is never half written in the trace.
//!
//! | module | holds |
//! |---|---|
//! | `layout` | the words of a part |
//! | `clock` | time stamps, and their conversion to nanoseconds |
//! | `recorder` | the mapped part of this process, and its blocks |
//! | `record` | the functions that record events |
//! | `event` | the events, and their encoding |
//! | `names` | the table of the names of functions |
//! | `part` | parts as read back |
//! | `merge` | all parts of a job, joined into one file |
//! | `merged` | what was joined, and errors |
//! | `trace` | the JSON of the Trace Event Format |
//!
//! While no timeline is on, [`is_on`] is a load and a branch.

mod clock;
mod event;
mod layout;
mod merge;
mod merged;
mod names;
mod part;
mod record;
mod recorder;
mod trace;

#[cfg(test)]
mod tests;

pub use event::{Direction, Message, Way};
pub use merge::{merge, Parts};
pub use merged::{MergeError, Merged};
pub use part::part_path;
pub use record::{begin, called, ended, forwarded, has_moved, is_on, name_waits_by, received, sent, slept, waited};
pub use recorder::{start, stop, Calls, Job, StartError, Stopped};
