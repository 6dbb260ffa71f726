//! `libntbshmem.so`: OpenSHMEM 1.6 over libntbring.
//!
//! Each layer uses those below it only, and what stands at the end:
//!
//! | module | holds |
//! |---|---|
//! | `exports` | the C functions, generated from the table in `shmem/api`: each calls the function of `calls` that the table names |
//! | `calls` | what the C functions do: checks of the program's arguments, and calls of the layers below |
//! | `start` | joining the job, and leaving it |
//! | `world` | the job between the two: all that follows, at one place |
//! | `teams`, `contexts`, `locks` | teams of PEs by handle, and active sets; communication contexts; distributed locks |
//! | `collectives` | algorithms of collectives of a group |
//! | `groups` | groups of PEs: teams and active sets, with their part of the library's own memory |
//! | `reach` | the PEs, and access to their memory: mapped (near), or by requests to their hosts (far); completion; waiting |
//! | `symmetric` | kinds of symmetric memory, places in it, and mappings of it |
//! | `regions`, `allocator` | the globals of the program as symmetric memory; allocation of parts of a memory |
//! | `reduce`, `long_double`, `types`, `handles` | operations of reductions, types and handles of the C interface |
//! | `fail`, `abi` | errors that end the job; the C ABI of libntbring |
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

mod allocator;
mod calls;
mod collectives;
mod contexts;
mod fail;
mod groups;
mod handles;
mod locks;
mod long_double;
mod reach;
mod reduce;
mod regions;
mod start;
mod symmetric;
mod teams;
mod types;
mod world;
