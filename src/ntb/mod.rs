//! The device: one NTB adapter as the protocol sees it, and the backends and decorators for it.
//!
//! [`Port`] is what every backend offers. [`emu`] emulates it between the processes of one
//! machine; [`weak`], [`fault`], [`trace`] and [`timing`] wrap ports. `tests/port_conformance` is the suite that
//! each of them must pass.
//!
//! The rule of this module: memory that another process can write is never turned into a Rust
//! reference. It is reached through [`InWindow`] (own memory, written by the neighbour) and
//! [`OutWindow`] (the neighbour's memory, which can be written but not read).

mod bytes;
mod region;
mod window;
pub use bytes::{Address, ForeignBytes, ForeignRoom, Room};
pub use region::Region;
pub use window::{InWindow, OutWindow, ReadGate, WriteSink};

#[cfg(not(loom))]
pub mod cut;
#[cfg(not(loom))]
mod delegate;
#[cfg(not(loom))]
mod deposit;
#[cfg(not(loom))]
mod port;
#[cfg(not(loom))]
mod word;
#[cfg(not(loom))]
pub use port::{LinkState, NtbError, Port, Side, Vector, DOORBELLS, SCRATCHPADS};
#[cfg(not(loom))]
pub use word::Word;

#[cfg(not(loom))]
pub mod emu;
#[cfg(not(loom))]
pub mod fault;
#[cfg(not(loom))]
pub mod timing;
#[cfg(not(loom))]
pub mod trace;
#[cfg(not(loom))]
pub mod weak;
