//! Ports without an adapter: registers and windows are memory that both ends of a cable map.
//!
//! Two backends use them: `loopback`, whose hosts are threads of one process, and the emulated ring of `ntbring-emu`,
//! whose hosts are groups of processes of one machine. The two differ only in the origin of the memory
//! ([`WindowMemory`]).

mod port;
mod registers;

pub use port::{SoftEnd, SoftPort, WindowMemory};
pub use registers::{Bank, Registers, SoftVector, PAGE};
