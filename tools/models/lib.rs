//! Register models of NTB adapters. A model has two functions, joined by a cable, and does what the registers of the
//! real chips do, wrong where these are wrong: it is tested with Linux's drivers of the same chips.
//!
//! | module | holds |
//! |---|---|
//! | `config_space` | the configuration space of a function |
//! | `host_side` | the memory and the interrupt vectors of the host in which a function is |
//! | `cable` | two functions and the cable between them; faults |
//! | `model` | the families of chips |
//! | `skx` | Intel gen3 (8086:201C) |
//! | `plugged` | a function of a model as [`ntbring_pci::Function`], within one process |

mod cable;
mod config_space;
mod host_side;
mod model;
mod plugged;
mod skx;

pub use cable::{Cable, Chip, Counts, End};
pub use config_space::{BarMask, ConfigSpace};
pub use host_side::HostSide;
pub use model::Model;
pub use plugged::Plugged;
pub use skx::Skx;
