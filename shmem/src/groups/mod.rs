//! Groups of PEs: teams, and the active sets of deprecated collectives, with their memory for collectives.

mod area;
mod control;
mod group;

pub use area::{Area, Flag, Way, BLOCK_MAX};
pub use control::Control;
pub use group::Group;
