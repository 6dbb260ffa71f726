//! The constants of the interface, for the library and for the header.

use std::ffi::{c_int, c_long};

/// A constant as the header has it.
#[derive(Debug, Clone, Copy)]
pub struct Constant {
    /// Name, without the underscore of old names.
    pub name: &'static str,
    /// C expression.
    pub value: &'static str,
    /// True if the deprecated name with an underscore before it exists, too.
    pub old: bool,
}

macro_rules! constants {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $value:literal $(as $handle:literal)? $(, $old:ident)?;)*) => {
        $($(#[$doc])* pub const $name: $type = $value;)*

        /// All constants, in the order of the header.
        pub const CONSTANTS: &[Constant] = &[$(Constant {
            name: stringify!($name),
            value: constants!(@value $value $(as $handle)?),
            old: constants!(@old $($old)?),
        },)*];
    };
    (@value $value:literal) => { stringify!($value) };
    (@value $value:literal as $handle:literal) => { concat!("((", $handle, ") ", stringify!($value), ")") };
    (@old) => { false };
    (@old old) => { true };
}

constants! {
    /// Major version of the specification.
    SHMEM_MAJOR_VERSION: c_int = 1, old;
    /// Minor version of the specification.
    SHMEM_MINOR_VERSION: c_int = 6, old;
    /// Largest length of the vendor string, with the zero byte.
    SHMEM_MAX_NAME_LEN: usize = 256, old;
    /// Name of this library.
    SHMEM_VENDOR_STRING: &str = "ntbring", old;

    /// Only one thread exists.
    SHMEM_THREAD_SINGLE: c_int = 0;
    /// Only the main thread calls the library.
    SHMEM_THREAD_FUNNELED: c_int = 1;
    /// One thread at a time calls the library.
    SHMEM_THREAD_SERIALIZED: c_int = 2;
    /// All threads call the library.
    SHMEM_THREAD_MULTIPLE: c_int = 3;

    /// Wait until equal.
    SHMEM_CMP_EQ: c_int = 1, old;
    /// Wait until not equal.
    SHMEM_CMP_NE: c_int = 2, old;
    /// Wait until greater.
    SHMEM_CMP_GT: c_int = 3, old;
    /// Wait until greater or equal.
    SHMEM_CMP_GE: c_int = 4, old;
    /// Wait until less.
    SHMEM_CMP_LT: c_int = 5, old;
    /// Wait until less or equal.
    SHMEM_CMP_LE: c_int = 6, old;

    /// A signal replaces the value.
    SHMEM_SIGNAL_SET: c_int = 0;
    /// A signal is added to the value.
    SHMEM_SIGNAL_ADD: c_int = 1;

    /// No context.
    SHMEM_CTX_INVALID: usize = 0 as "shmem_ctx_t";
    /// The context of all functions without one.
    SHMEM_CTX_DEFAULT: usize = 1 as "shmem_ctx_t";
    /// A context that one thread at a time uses.
    SHMEM_CTX_SERIALIZED: c_long = 1;
    /// A context that only the thread uses that made it.
    SHMEM_CTX_PRIVATE: c_long = 2;
    /// A context whose order does not include stores to memory.
    SHMEM_CTX_NOSTORE: c_long = 4;
    /// A session in which many operations may be sent together.
    SHMEM_CTX_SESSION_BATCH: c_long = 1;
    /// Mask: the configuration of a session has `total_ops`.
    SHMEM_CTX_SESSION_TOTAL_OPS: c_long = 1;

    /// No team.
    SHMEM_TEAM_INVALID: usize = 0 as "shmem_team_t";
    /// The team of all processing elements.
    SHMEM_TEAM_WORLD: usize = 1 as "shmem_team_t";
    /// The team of processing elements that reach each other's memory by load and store.
    SHMEM_TEAM_SHARED: usize = 2 as "shmem_team_t";
    /// Mask: the configuration of a team has `num_contexts`.
    SHMEM_TEAM_NUM_CONTEXTS: c_long = 1;

    /// Hint: the memory is used by remote atomics.
    SHMEM_MALLOC_ATOMICS_REMOTE: c_long = 1;
    /// Hint: the memory is used by remote signals.
    SHMEM_MALLOC_SIGNAL_REMOTE: c_long = 2;

    /// Initial value of all elements of `pSync`.
    SHMEM_SYNC_VALUE: c_long = 0, old;
    /// Elements of `pSync`, whatever it is used for.
    SHMEM_SYNC_SIZE: usize = 16, old;
    /// Elements of `pSync` of barriers.
    SHMEM_BARRIER_SYNC_SIZE: usize = 16, old;
    /// Elements of `pSync` of broadcasts.
    SHMEM_BCAST_SYNC_SIZE: usize = 16, old;
    /// Elements of `pSync` of collects.
    SHMEM_COLLECT_SYNC_SIZE: usize = 16, old;
    /// Elements of `pSync` of reductions.
    SHMEM_REDUCE_SYNC_SIZE: usize = 16, old;
    /// Elements of `pSync` of exchanges of all with all.
    SHMEM_ALLTOALL_SYNC_SIZE: usize = 16, old;
    /// Elements of `pSync` of strided exchanges of all with all.
    SHMEM_ALLTOALLS_SYNC_SIZE: usize = 16, old;
    /// Fewest elements of `pWrk` of reductions.
    SHMEM_REDUCE_MIN_WRKDATA_SIZE: usize = 16, old;
}
