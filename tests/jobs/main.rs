//! Whole MPI jobs under the mpiexec that was built: invalid input, death of ranks and its survivors, routes of
//! messages, faulty links, waiting, ways to end, other jobs, and other effects of a job's environment.
//!
//! They need `cargo xtask setup` and the programs of tests/mpi, so plain `cargo test` leaves them out; `cargo xtask
//! test` runs them.

mod abort;
mod adapters;
mod bad_input;
#[path = "../common/mod.rs"]
mod common;
mod company;
mod death;
mod ends;
mod faults;
mod harness;
mod liveness;
mod made;
mod path;
mod processes;
mod start;
mod stats;
mod strangers;
mod survivors;
mod timeline;
mod top;
mod traffic;
mod tutorial;
mod waiting;
mod watch;
