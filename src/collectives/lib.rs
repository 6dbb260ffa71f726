//! Collectives over a ring with one rank on each host: the choice of a method, and schedules in which each rank
//! exchanges messages with its two neighbours only and passes on the data for ranks beyond them.
//!
//! Nothing here does I/O. [`begin`] chooses a method for a collective; if that is a [`Schedule`], [`Schedule::next`]
//! returns the steps of one rank in turn, and the caller carries them out: it sends and receives, copies and reduces.
//! The caller also allocates the buffers, which a step names with positions in elements.
//!
//! A schedule never waits for any one of several requests. Messages from one rank to another must be matched in the
//! order in which they were sent and receives were posted. Then the steps of all ranks have the same effect in every
//! order of completion.

mod allgather;
mod alltoall;
mod broadcast;
mod method;
mod parts;
mod reduce;
mod ring;
mod schedule;
mod segments;
mod step;
#[cfg(test)]
mod tests;

pub use method::{begin, Collective, Kind, Method};
pub use schedule::Schedule;
pub use step::{Buffer, Place, Step};
