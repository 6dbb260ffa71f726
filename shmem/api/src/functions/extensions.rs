//! Functions that the specification does not have.

use crate::family::{Family, Group};

pub(super) const HEAP: Group = Group {
    heading: "State of the symmetric heap in bytes; each pointer may be null",
    header: "shmemx.h",
    families: &[Family::single(
        "shmemx_heap_info",
        "void",
        "size_t *reserved, size_t *backed, size_t *used, size_t *largest_free",
        "memory::heap_info",
    )],
};
