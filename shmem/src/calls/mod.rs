//! The functions behind the C functions, in modules that the table in `shmem/api` names. They check the arguments of the
//! program, and call the layers below.

pub mod active;
pub mod atomics;
pub mod collectives;
mod compare;
pub mod contexts;
pub mod locks;
mod long_double;
pub mod memory;
pub mod order;
pub mod profiling;
pub mod query;
pub mod rma;
pub mod signals;
pub mod start;
mod strided;
pub mod teams;
pub mod waiting;
