//! The table of all families of functions.

mod atomics;
mod collectives;
mod extensions;
mod objects;
mod rma;
mod setup;
mod waiting;

use crate::family::Group;

/// All groups, in the order of the header.
pub static GROUPS: &[Group] = &[
    setup::START,
    setup::QUERY,
    setup::MEMORY,
    objects::TEAMS,
    objects::CONTEXTS,
    rma::BLOCKING,
    rma::NONBLOCKING,
    rma::SIGNALS,
    atomics::BLOCKING,
    atomics::NONBLOCKING,
    atomics::OLD,
    waiting::UNTIL,
    waiting::TEST,
    waiting::OLD,
    objects::ORDER,
    objects::LOCKS,
    collectives::TEAMS,
    collectives::REDUCTIONS,
    collectives::SCANS,
    collectives::ACTIVE,
    setup::PROFILING,
    setup::OLD,
    extensions::HEAP,
];
