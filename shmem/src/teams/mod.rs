//! The teams of a PE, and the groups of active sets.

mod introductions;
mod split;
mod table;

pub use introductions::Introductions;
pub use split::Part;
pub use table::Teams;
