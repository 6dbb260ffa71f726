//! ntbring: messages between the ranks of an MPI job over a ring of hosts that are joined by
//! PCIe Non-Transparent Bridges, or over an emulation of such a ring in shared memory.
//!
//! The layers, from the device up; each knows the one below it and nothing above it:
//!
//! | module | holds |
//! |---|---|
//! | [`ntb`] | the device: windows, scratchpads, doorbells, link state |
//! | [`queue`] | circular queues in a window, one producer and one consumer each |
//! | [`ring`] | hosts: handshake, routes, relay |
//! | [`zerocopy`] | how a message travels, chosen by its size |
//! | [`endpoint`] | messages between ranks |
//! | [`tune`] | measures where one way of a message ends and the next begins |
//! | `sim` | a ring in virtual time, out of the code above |
//! | `ffi` | the C ABI of `include/ntbring.h` |
//!
//! `docs/architecture.md` draws the path of one message through them.

#[cfg(not(loom))]
mod ffi;

// Of what loom has no need to build, this is for it.
#[cfg(all(loom, test))]
#[path = "ffi/deputy/gate.rs"]
mod gate;
