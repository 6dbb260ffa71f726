//! Whole MPI jobs under the mpiexec that was built: bad input, death and those who survive it, the path of messages, bad
//! links, waiting, ways to
//! end, other jobs, and what else there is in a program or on a machine.
//!
//! They need `cargo xtask setup` and the programs of tests/mpi, so plain `cargo test` leaves them out;
//! `cargo xtask test` runs them.

mod abort;
mod bad_input;
mod company;
mod death;
mod faults;
mod harness;
mod path;
mod stats;
mod strangers;
mod survivors;
mod waiting;
