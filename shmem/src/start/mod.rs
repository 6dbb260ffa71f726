//! Joining the job, and leaving it.

mod card;
mod job;
mod join;
mod leave;
mod mapping;

pub use join::join;
pub use leave::leave;
