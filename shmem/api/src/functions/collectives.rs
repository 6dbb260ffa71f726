//! Collectives, on teams and on active sets.

use crate::family::{Family, Group};
use crate::types::Set;

const GATHER: &str = "shmem_team_t team, T *dest, const T *source, size_t nelems";
const ROOT: &str = "shmem_team_t team, T *dest, const T *source, size_t nelems, int PE_root";
const STRIDED: &str = "shmem_team_t team, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems";
const REDUCE: &str = "shmem_team_t team, T *dest, const T *source, size_t nreduce";

const fn on_team(stem: &'static str, parameters: &'static str, rust: &'static str, generic: &'static str) -> Family {
    Family::new(stem, "int", parameters, rust).typed(Set::Rma).mem().generic(generic)
}

pub(super) const TEAMS: Group = Group::new(
    "Collectives",
    &[
        Family::single("shmem_barrier_all", "void", "", "collectives::barrier_all"),
        Family::single("shmem_sync_all", "void", "", "collectives::sync_all"),
        on_team("broadcast", ROOT, "collectives::broadcast", "shmem_broadcast"),
        on_team("collect", GATHER, "collectives::collect", "shmem_collect"),
        on_team("fcollect", GATHER, "collectives::fcollect", "shmem_fcollect"),
        on_team("alltoall", GATHER, "collectives::alltoall", "shmem_alltoall"),
        on_team("alltoalls", STRIDED, "collectives::alltoalls", "shmem_alltoalls"),
    ],
);

const fn reduction(set: Set, stem: &'static str, operation: &'static str, generic: &'static str) -> Family {
    Family::new(stem, "int", REDUCE, "collectives::reduce").typed(set).operation(operation).generic(generic)
}

pub(super) const REDUCTIONS: Group = Group::new(
    "Reductions",
    &[
        reduction(Set::ReduceBits, "and_reduce", "And", "shmem_and_reduce"),
        reduction(Set::ReduceBits, "or_reduce", "Or", "shmem_or_reduce"),
        reduction(Set::ReduceBits, "xor_reduce", "Xor", "shmem_xor_reduce"),
        reduction(Set::ReduceOrder, "max_reduce", "Max", "shmem_max_reduce"),
        reduction(Set::ReduceOrder, "min_reduce", "Min", "shmem_min_reduce"),
        reduction(Set::ReduceArithmetic, "sum_reduce", "Sum", "shmem_sum_reduce"),
        reduction(Set::ReduceArithmetic, "prod_reduce", "Prod", "shmem_prod_reduce"),
    ],
);

pub(super) const SCANS: Group = Group::new(
    "Scans",
    &[
        Family::new("sum_inscan", "int", GATHER, "collectives::inscan")
            .typed(Set::ReduceArithmetic)
            .generic("shmem_sum_inscan"),
        Family::new("sum_exscan", "int", GATHER, "collectives::exscan")
            .typed(Set::ReduceArithmetic)
            .generic("shmem_sum_exscan"),
    ],
);

const ACTIVE_SIZES: &[u32] = &[32, 64];
const ACTIVE_SET: &str = "int PE_start, int logPE_stride, int PE_size, long *pSync";
const ACTIVE_GATHER: &str = "T *dest, const T *source, size_t nelems, int PE_start, int logPE_stride, int PE_size, \
                             long *pSync";
const ACTIVE_ROOT: &str = "T *dest, const T *source, size_t nelems, int PE_root, int PE_start, int logPE_stride, \
                           int PE_size, long *pSync";
const ACTIVE_STRIDED: &str = "T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int PE_start, \
                              int logPE_stride, int PE_size, long *pSync";
const ACTIVE_REDUCE: &str = "T *dest, const T *source, int nreduce, int PE_start, int logPE_stride, int PE_size, \
                             T *pWrk, long *pSync";

const fn on_set(stem: &'static str, parameters: &'static str, rust: &'static str) -> Family {
    Family::new(stem, "void", parameters, rust).sized(ACTIVE_SIZES).deprecated()
}

const fn to_all(set: Set, stem: &'static str, operation: &'static str) -> Family {
    Family::new(stem, "void", ACTIVE_REDUCE, "active::to_all").typed(set).operation(operation).deprecated()
}

pub(super) const ACTIVE: Group = Group::new(
    "Collectives on active sets",
    &[
        Family::single("shmem_barrier", "void", ACTIVE_SET, "active::barrier").deprecated(),
        Family::single("shmem_sync", "void", ACTIVE_SET, "active::sync").deprecated(),
        on_set("broadcast", ACTIVE_ROOT, "active::broadcast"),
        on_set("collect", ACTIVE_GATHER, "active::collect"),
        on_set("fcollect", ACTIVE_GATHER, "active::fcollect"),
        on_set("alltoall", ACTIVE_GATHER, "active::alltoall"),
        on_set("alltoalls", ACTIVE_STRIDED, "active::alltoalls"),
        to_all(Set::ActiveBits, "and_to_all", "And"),
        to_all(Set::ActiveBits, "or_to_all", "Or"),
        to_all(Set::ActiveBits, "xor_to_all", "Xor"),
        to_all(Set::ActiveOrder, "max_to_all", "Max"),
        to_all(Set::ActiveOrder, "min_to_all", "Min"),
        to_all(Set::ActiveArithmetic, "sum_to_all", "Sum"),
        to_all(Set::ActiveArithmetic, "prod_to_all", "Prod"),
    ],
);
