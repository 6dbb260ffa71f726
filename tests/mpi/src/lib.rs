//! Common parts of ntbring's MPI test programs: starting and ending a job, failing with a message without ever hanging,
//! payloads that identify their sender, and the host of each rank.
//!
//! Every program is one file in `src/bin`, runs with any number of ranks from 2 up unless its documentation says
//! otherwise, prints `ok NAME` on rank 0 if it has succeeded, and otherwise prints `FAIL rank R: what` and ends the
//! whole job with a code other than 0.

pub mod counters;
mod exchange;
mod hosts;
mod job;
mod memory;
mod pattern;
pub mod ports;
pub mod raw;
mod rng;
pub mod typemap;
pub mod window;

pub use exchange::{exchange, received_bytes, shifts};
pub use hosts::Hosts;
pub use job::{arg, fail, Job};
pub use memory::{resident, status, Usage};
pub use pattern::{fill, filled, mismatch, verify};
pub use rng::Rng;
