//! Start and end, queries, memory, and the old names of those.

use crate::family::{Family, Group};

pub(super) const START: Group = Group::new(
    "Start and end",
    &[
        Family::single("shmem_init", "void", "", "start::init"),
        Family::single("shmem_init_thread", "int", "int requested, int *provided", "start::init_thread"),
        Family::single("shmem_query_thread", "void", "int *provided", "start::query_thread"),
        Family::single("shmem_query_initialized", "void", "int *initialized", "start::query_initialized"),
        Family::single("shmem_finalize", "void", "", "start::finalize"),
        Family::single("shmem_global_exit", "void", "int status", "start::global_exit"),
    ],
);

pub(super) const QUERY: Group = Group::new(
    "Processing elements and addresses",
    &[
        Family::single("shmem_my_pe", "int", "", "query::my_pe"),
        Family::single("shmem_n_pes", "int", "", "query::n_pes"),
        Family::single("shmem_pe_accessible", "int", "int pe", "query::pe_accessible"),
        Family::single("shmem_addr_accessible", "int", "const void *addr, int pe", "query::addr_accessible"),
        Family::single("shmem_ptr", "void *", "const void *dest, int pe", "query::ptr"),
        Family::single("shmem_team_ptr", "void *", "shmem_team_t team, const void *dest, int pe", "query::team_ptr"),
        Family::single("shmem_info_get_version", "void", "int *major, int *minor", "query::info_get_version"),
        Family::single("shmem_info_get_name", "void", "char *name", "query::info_get_name"),
    ],
);

pub(super) const MEMORY: Group = Group::new(
    "Symmetric memory",
    &[
        Family::single("shmem_malloc", "void *", "size_t size", "memory::malloc"),
        Family::single("shmem_calloc", "void *", "size_t count, size_t size", "memory::calloc"),
        Family::single("shmem_free", "void", "void *ptr", "memory::free"),
        Family::single("shmem_realloc", "void *", "void *ptr, size_t size", "memory::realloc"),
        Family::single("shmem_align", "void *", "size_t alignment, size_t size", "memory::align"),
        Family::single("shmem_malloc_with_hints", "void *", "size_t size, long hints", "memory::malloc_with_hints"),
    ],
);

pub(super) const PROFILING: Group =
    Group::new("Profiling", &[Family::single("shmem_pcontrol", "void", "int level, ...", "profiling::pcontrol")]);

pub(super) const OLD: Group = Group::new(
    "Old names",
    &[
        Family::single("start_pes", "void", "int npes", "start::start_pes").deprecated(),
        Family::single("_my_pe", "int", "", "query::my_pe").deprecated(),
        Family::single("_num_pes", "int", "", "query::n_pes").deprecated(),
        Family::single("num_pes", "int", "", "query::n_pes").deprecated().hidden(),
        Family::single("shmalloc", "void *", "size_t size", "memory::malloc").deprecated(),
        Family::single("shfree", "void", "void *ptr", "memory::free").deprecated(),
        Family::single("shrealloc", "void *", "void *ptr, size_t size", "memory::realloc").deprecated(),
        Family::single("shmemalign", "void *", "size_t alignment, size_t size", "memory::align").deprecated(),
    ],
);
