//! `libntbshmem.so`: OpenSHMEM 1.6 over libntbring.
//!
//! | module | holds |
//! |---|---|
//! | `exports` | the C functions, generated from the table in `shmem/api`: each calls the function of a module below |
//! | `start` | initialisation and finalisation |
//! | `world` | the job as this PE sees it: PEs, their memory, contexts, teams |
//! | `regions` | symmetric memory: translation of addresses, the globals of the program |
//! | `heap`, `memory` | the symmetric heap and its allocator |
//! | `reach` | access to memory of another PE: mapped (near), or by requests to its host (far) |
//! | `rma`, `strided`, `signals`, `atomics` | one-sided operations |
//! | `waiting`, `order`, `locks` | point-to-point synchronisation, memory ordering, locks |
//! | `contexts`, `teams` | communication contexts, teams of PEs |
//! | `collectives`, `active`, `reduce` | collectives on teams and on active sets, reductions |
//!
//! The ring, its endpoint and the collectives' schedules are those of libntbring, through its C ABI.

// The functions have the arguments of the C functions, and their names.
#![allow(clippy::too_many_arguments)]

#[allow(non_camel_case_types, non_upper_case_globals, missing_docs, dead_code)]
#[allow(clippy::all, clippy::undocumented_unsafe_blocks)]
mod abi {
    include!(concat!(env!("OUT_DIR"), "/abi.rs"));
}
#[allow(missing_docs, unsafe_op_in_unsafe_fn)]
#[allow(clippy::all, clippy::undocumented_unsafe_blocks)]
mod exports {
    include!(concat!(env!("OUT_DIR"), "/exports.rs"));
}

mod active;
mod atomics;
mod collectives;
mod contexts;
mod fail;
mod handles;
mod heap;
mod locks;
mod long_double;
mod memory;
mod order;
mod profiling;
mod query;
mod reach;
mod reduce;
mod regions;
mod rma;
mod signals;
mod start;
mod strided;
mod teams;
mod types;
mod waiting;
mod world;
