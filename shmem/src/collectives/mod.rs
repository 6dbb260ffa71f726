//! Collectives of groups.
//!
//! Three mechanisms carry small data: a barrier of flags, and an exchange and a broadcast of blocks through slots in the
//! group's memory. Larger data are read directly from the memory of other PEs between two barriers. If not all memory is
//! mapped and there is one PE on each host, they pass from neighbour to neighbour instead: by puts (chains), or by the
//! schedules of libntbring.

mod barrier;
mod broadcast;
mod chain;
mod exchange;
mod moves;
mod reductions;
mod schedule;

pub use barrier::synchronise;
pub use exchange::exchange_words;
pub use moves::{alltoall_in, broadcast_in, collect_in, fcollect_in, Call, Spread};
pub use reductions::{reduce_in, scan_in};
