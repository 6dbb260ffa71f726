//! The five models of MPI-VMMC (Kim and Maeng, KAIST 2000) over ntbring's windows: the same messages with and without
//! each of the mechanisms on which ntbring is built. docs/experiments.md describes the models and the results.
//!
//! | module | holds |
//! |---|---|
//! | [`model`] | the models, and the path of a payload of a given size in each of them |
//! | [`lane`] | the queue between two ends: ntbring's ring buffer, with explicit head and tail writes in some models |
//! | [`end`] | one end of a connection: sends and receives messages as its model requires |
//! | [`link`] | an emulated NTB link between two processes, with or without a link model |
//! | [`measure`] | ping-pong and stream |
//! | [`peer`] | the second process |
//!
//! The programs do not use MPI. The mechanisms of the library (ring buffers, windows, the emulated port, link models)
//! are used as they are; only those that it does not have are here: the announced tail, the eager head, the sender's
//! and receiver's extra copies, and payloads that are placed in memory which the receiver has named.

pub mod end;
pub mod lane;
pub mod link;
pub mod measure;
pub mod model;
pub mod peer;

/// Errors of a connection.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The emulated link could not be created.
    #[error("the emulated link: {0}")]
    Link(#[from] ntbring_ntb::NtbError),
    /// The lane has an entry that the protocol does not allow.
    #[error("the lane from the peer: {0}")]
    Lane(#[from] ntbring_queue::Corrupt),
    /// An entry has a content that the protocol does not allow.
    #[error("the peer sent {0}")]
    Message(&'static str),
    /// A link model that does not exist, or an invalid address.
    #[error("{0}")]
    Argument(String),
    /// The other process has ended, or a test has waited too long.
    #[error("the peer is gone: {0}")]
    Gone(String),
}
