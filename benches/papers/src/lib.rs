//! The five models of MPI-VMMC (Kim and Maeng, KAIST 2000) over ntbring's windows: the same messages with and without each of the
//! mechanisms that ntbring is built on. docs/experiments.md describes the models and the results.
//!
//! | module | holds |
//! |---|---|
//! | [`model`] | the models, and how each carries a payload of a given size |
//! | [`lane`] | the queue between two ends: ntbring's ring buffer, with explicit head and tail writes where a model has them |
//! | [`end`] | one end of a connection: sends and receives messages as its model says |
//! | [`link`] | an emulated NTB link between two processes, with or without a link model |
//! | [`measure`] | ping-pong and stream |
//! | [`peer`] | the second process |
//!
//! Nothing here knows MPI. What the library has (ring buffers, windows, the emulated port, link models) is used as it is; only what
//! production does not have is here: the announced tail, the eager head, the sender's and receiver's extra copies, and payloads that
//! are placed in memory which the receiver has named.

pub mod end;
pub mod lane;
pub mod link;
pub mod measure;
pub mod model;
pub mod peer;

/// Errors of a connection.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The emulated link could not be had.
    #[error("the emulated link: {0}")]
    Link(#[from] ntbring_ntb::NtbError),
    /// An entry of the lane is not what the protocol allows.
    #[error("the lane from the peer: {0}")]
    Lane(#[from] ntbring_queue::Corrupt),
    /// An entry's content is not what the protocol allows.
    #[error("the peer sent {0}")]
    Message(&'static str),
    /// A link model that does not exist, or an address that is none.
    #[error("{0}")]
    Argument(String),
    /// The other process has ended, or a test has waited too long.
    #[error("the peer is gone: {0}")]
    Gone(String),
}
