//! Collectives through shared buffers: every member of a group has a buffer that all members map. A member writes
//! only to its own buffer, and reads those of the others.
//!
//! That is possible among the ranks of one host, and among all ranks of a ring whose links grant the shortcut
//! `segments`, because all of its hosts are then on one machine.
//!
//! A buffer has a few *cells*. A member *posts* a cell: it waits until all members have read what the cell held before,
//! writes the contents, and then the cell's tag. The tag names the collective and the position of the post in it, so a
//! reader judges by the cell alone whether it is the one that it waits for. Each member also has a word that tells how
//! far it has read. Nothing else is synchronised: a collective returns as soon as its member has its result, and a
//! member may be two collectives ahead of another, or 64 if their posts fit small cells.
//!
//! | module | holds |
//! |---|---|
//! | [`layout`] | offsets in a buffer, and tags |
//! | [`buffers`] | the buffers of a group, and what a member does while it waits |
//! | `operation` | one collective at one member: posts and reads |
//! | [`addresses`] | the choice between posts of bytes and of addresses |
//! | `blocks` | posts of collectives in which members exchange blocks |
//! | `moves` | barrier, broadcast, allgather, alltoall |
//! | `reductions` | reduce, allreduce, reduce-scatter |
//! | `scans` | scan and exclusive scan |
//! | [`arithmetic`] | the combination of elements |

pub mod addresses;
pub mod arithmetic;
mod blocks;
pub mod buffers;
mod error;
pub mod layout;
mod moves;
mod operation;
mod reductions;
mod scans;
#[cfg(test)]
mod tests;

pub use arithmetic::Reduction;
pub use buffers::{Buffers, Waiting};
pub use error::SharedError;
pub use moves::Parts;
