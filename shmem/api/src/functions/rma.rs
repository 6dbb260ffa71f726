//! Remote memory access, and such with signals.

use crate::family::{Family, Group};
use crate::types::Set;

const SIZES: &[u32] = &[8, 16, 32, 64, 128];

const WHOLE: &str = "T *dest, const T *source, size_t nelems, int pe";
const STRIDED: &str = "T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe";
const BLOCKS: &str = "T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe";
const SIGNALLED: &str =
    "T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe";

/// A family for the types of remote memory access.
const fn moving(stem: &'static str, parameters: &'static str, rust: &'static str, generic: &'static str) -> Family {
    Family::new(stem, "void", parameters, rust).typed(Set::Rma).sized(SIZES).ctx().generic(generic)
}

pub(super) const BLOCKING: Group = Group::new(
    "Remote memory access",
    &[
        moving("put", WHOLE, "rma::put", "shmem_put").mem(),
        moving("get", WHOLE, "rma::get", "shmem_get").mem(),
        Family::new("p", "void", "T *dest, T value, int pe", "rma::p").typed(Set::Rma).ctx().generic("shmem_p"),
        Family::new("g", "T", "const T *source, int pe", "rma::g").typed(Set::Rma).ctx().generic("shmem_g"),
        moving("iput", STRIDED, "rma::iput", "shmem_iput"),
        moving("iget", STRIDED, "rma::iget", "shmem_iget"),
        moving("ibput", BLOCKS, "rma::ibput", "shmem_ibput"),
        moving("ibget", BLOCKS, "rma::ibget", "shmem_ibget"),
    ],
);

pub(super) const NONBLOCKING: Group = Group::new(
    "Nonblocking remote memory access",
    &[
        moving("put", WHOLE, "rma::put_nbi", "shmem_put_nbi").mem().suffix("_nbi"),
        moving("get", WHOLE, "rma::get_nbi", "shmem_get_nbi").mem().suffix("_nbi"),
    ],
);

pub(super) const SIGNALS: Group = Group::new(
    "Signals",
    &[
        moving("put", SIGNALLED, "signals::put_signal", "shmem_put_signal").mem().suffix("_signal"),
        moving("put", SIGNALLED, "signals::put_signal_nbi", "shmem_put_signal_nbi").mem().suffix("_signal_nbi"),
        Family::single("shmem_signal_fetch", "uint64_t", "const uint64_t *sig_addr", "signals::signal_fetch"),
        Family::single(
            "shmem_signal_wait_until",
            "uint64_t",
            "uint64_t *sig_addr, int cmp, uint64_t cmp_value",
            "signals::signal_wait_until",
        ),
        Family::single(
            "shmem_signal_set",
            "void",
            "uint64_t *sig_addr, uint64_t signal, int pe",
            "signals::signal_set",
        )
        .ctx(),
        Family::single(
            "shmem_signal_add",
            "void",
            "uint64_t *sig_addr, uint64_t signal, int pe",
            "signals::signal_add",
        )
        .ctx(),
    ],
);
