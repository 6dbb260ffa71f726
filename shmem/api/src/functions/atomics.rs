//! Atomics.

use crate::family::{Family, Group};
use crate::types::Set;

const FROM: &str = "const T *source, int pe";
const HERE: &str = "T *dest, int pe";
const VALUE: &str = "T *dest, T value, int pe";
const COMPARE: &str = "T *dest, T cond, T value, int pe";
const HERE_LATER: &str = "T *fetch, T *dest, int pe";
const VALUE_LATER: &str = "T *fetch, T *dest, T value, int pe";

/// A family with variants for contexts: result, stem, parameters, implementation, generic name.
const fn atomic(set: Set, r: &'static str, stem: &'static str, p: &'static str, rust: [&'static str; 2]) -> Family {
    Family::new(stem, r, p, rust[0]).typed(set).ctx().generic(rust[1])
}

pub(super) const BLOCKING: Group = Group::new(
    "Atomics",
    &[
        atomic(Set::Extended, "T", "atomic_fetch", FROM, ["atomics::fetch", "shmem_atomic_fetch"]),
        atomic(Set::Extended, "void", "atomic_set", VALUE, ["atomics::set", "shmem_atomic_set"]),
        atomic(Set::Extended, "T", "atomic_swap", VALUE, ["atomics::swap", "shmem_atomic_swap"]),
        atomic(
            Set::Standard,
            "T",
            "atomic_compare_swap",
            COMPARE,
            ["atomics::compare_swap", "shmem_atomic_compare_swap"],
        ),
        atomic(Set::Standard, "T", "atomic_fetch_inc", HERE, ["atomics::fetch_inc", "shmem_atomic_fetch_inc"]),
        atomic(Set::Standard, "void", "atomic_inc", HERE, ["atomics::inc", "shmem_atomic_inc"]),
        atomic(Set::Standard, "T", "atomic_fetch_add", VALUE, ["atomics::fetch_add", "shmem_atomic_fetch_add"]),
        atomic(Set::Standard, "void", "atomic_add", VALUE, ["atomics::add", "shmem_atomic_add"]),
        atomic(Set::Bitwise, "T", "atomic_fetch_and", VALUE, ["atomics::fetch_and", "shmem_atomic_fetch_and"]),
        atomic(Set::Bitwise, "void", "atomic_and", VALUE, ["atomics::and_", "shmem_atomic_and"]),
        atomic(Set::Bitwise, "T", "atomic_fetch_or", VALUE, ["atomics::fetch_or", "shmem_atomic_fetch_or"]),
        atomic(Set::Bitwise, "void", "atomic_or", VALUE, ["atomics::or_", "shmem_atomic_or"]),
        atomic(Set::Bitwise, "T", "atomic_fetch_xor", VALUE, ["atomics::fetch_xor", "shmem_atomic_fetch_xor"]),
        atomic(Set::Bitwise, "void", "atomic_xor", VALUE, ["atomics::xor_", "shmem_atomic_xor"]),
    ],
);

/// A nonblocking family: its name ends with `_nbi`, which the suffix has.
const fn later(set: Set, stem: &'static str, p: &'static str, rust: [&'static str; 2]) -> Family {
    atomic(set, "void", stem, p, rust).suffix("_nbi")
}

pub(super) const NONBLOCKING: Group = Group::new(
    "Nonblocking atomics",
    &[
        later(
            Set::Extended,
            "atomic_fetch",
            "T *fetch, const T *source, int pe",
            ["atomics::fetch_nbi", "shmem_atomic_fetch_nbi"],
        ),
        later(Set::Extended, "atomic_swap", VALUE_LATER, ["atomics::swap_nbi", "shmem_atomic_swap_nbi"]),
        later(
            Set::Standard,
            "atomic_compare_swap",
            "T *fetch, T *dest, T cond, T value, int pe",
            ["atomics::compare_swap_nbi", "shmem_atomic_compare_swap_nbi"],
        ),
        later(Set::Standard, "atomic_fetch_inc", HERE_LATER, ["atomics::fetch_inc_nbi", "shmem_atomic_fetch_inc_nbi"]),
        later(Set::Standard, "atomic_fetch_add", VALUE_LATER, ["atomics::fetch_add_nbi", "shmem_atomic_fetch_add_nbi"]),
        later(Set::Bitwise, "atomic_fetch_and", VALUE_LATER, ["atomics::fetch_and_nbi", "shmem_atomic_fetch_and_nbi"]),
        later(Set::Bitwise, "atomic_fetch_or", VALUE_LATER, ["atomics::fetch_or_nbi", "shmem_atomic_fetch_or_nbi"]),
        later(Set::Bitwise, "atomic_fetch_xor", VALUE_LATER, ["atomics::fetch_xor_nbi", "shmem_atomic_fetch_xor_nbi"]),
    ],
);

/// A family under its old name.
const fn old(set: Set, r: &'static str, stem: &'static str, p: &'static str, rust: [&'static str; 2]) -> Family {
    Family::new(stem, r, p, rust[0]).typed(set).default_ctx().generic(rust[1]).deprecated()
}

pub(super) const OLD: Group = Group::new(
    "Old names of atomics",
    &[
        old(Set::OldExtended, "T", "fetch", FROM, ["atomics::fetch", "shmem_fetch"]),
        old(Set::OldExtended, "void", "set", VALUE, ["atomics::set", "shmem_set"]),
        old(Set::OldExtended, "T", "swap", VALUE, ["atomics::swap", "shmem_swap"]),
        old(Set::OldStandard, "T", "cswap", COMPARE, ["atomics::compare_swap", "shmem_cswap"]),
        old(Set::OldStandard, "T", "finc", HERE, ["atomics::fetch_inc", "shmem_finc"]),
        old(Set::OldStandard, "void", "inc", HERE, ["atomics::inc", "shmem_inc"]),
        old(Set::OldStandard, "T", "fadd", VALUE, ["atomics::fetch_add", "shmem_fadd"]),
        old(Set::OldStandard, "void", "add", VALUE, ["atomics::add", "shmem_add"]),
    ],
);
