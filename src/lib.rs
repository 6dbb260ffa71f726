//! `libntbring.so`: messages between the ranks of an MPI job over a ring of hosts that are joined by PCIe
//! Non-Transparent Bridges, or over an emulation of such a ring in shared memory.
//!
//! This package holds only the exports of the C ABI in `include/ntbring.h`, which MPICH's `ch4:ntbring` network module
//! calls. The work is done by the crates in the folders of `src`, from `ntbring-endpoint` down; `docs/architecture.md`
//! lists them and describes the path of one message through them.

#[cfg(not(loom))]
mod ffi;

// Builds for loom leave the ABI out and have only the biased lock, for its model.
#[cfg(all(loom, test))]
#[path = "ffi/progress_thread/biased_lock.rs"]
mod biased_lock;
