//! One-sided operations on window memory that a host carries out for ranks which cannot access the memory directly. The
//! rank that owns the memory may compute meanwhile.
//!
//! | file | holds |
//! |---|---|
//! | `packet` | wire format of requests and replies |
//! | [`operate`] | arithmetic of accumulate operations |
//! | `registry` | registration of segments by the ranks of a host with the host's forwarder |
//! | `server` | execution of requests, and replies to them |
//! | `instructions` | atomic operations by instructions of the processor |
//!
//! The server is sans-IO: the forwarder hands it requests and the current time, and sends the replies. Its requesters
//! are the ranks' endpoints (`remote` in `ntbring-endpoint`).

mod instructions;
pub mod operate;
mod packet;
mod registry;
mod server;

pub use packet::{Action, Reply, Request, Status, GETS_MAX, GRAIN, OPEN_MAX, REPLY, REQUEST, SWAP_MAX};
pub use registry::{address, words, Change, Registry};
pub use server::{Answer, Ranks, Server};
