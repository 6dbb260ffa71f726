//! The one PMI-1 client of a process.
//!
//! A process manager (hydra's `mpiexec`, `srun`) gives each process one connection, on which the process asks one
//! question at a time, and which ends with the first `finalize`. Two clients in a process would take each other's
//! answers, so that MPI and OpenSHMEM share this one ([`session`]): each opens it and closes it, in any order.
//!
//! MPICH's own client asks further questions on the same connection while it holds the session's [`Turn`].

mod call_record;
mod connection;
mod error;
mod hosts;
mod job;
mod manager;
mod session;
mod turn;

pub use call_record::{call_record, CALL_RECORD_BYTES};
pub use error::PmiError;
pub use hosts::{parse_mapping, Split};
pub use job::{Job, Limits};
pub use session::{session, Session};
pub use turn::{Held, Turn};

#[cfg(test)]
mod tests;
