//! Register models of NTB adapters. A model has two functions, joined by a cable, and does what the registers of the
//! real chips do, wrong where these are wrong: it is tested with Linux's drivers of the same chips.
//!
//! | module | holds |
//! |---|---|
//! | `config_space` | the configuration space of a function |
//! | `host_side` | the memory and the interrupt vectors of the host in which a function is |
//! | `cable` | two functions and the cable between them; faults |
//! | `side` | the function in one host |
//! | `joined` | two functions and what all families do alike |
//! | `model` | the families of chips |
//! | `intel` | the registers that Intel's generations share |
//! | `plx` | PLX/Broadcom PEX 87xx, back to back and NTB to root port |
//! | `plx_switch` | the registers of one such switch |
//! | `skx` | Intel gen3 (8086:201C) |
//! | `icx` | Intel gen4 and gen5 (8086:347E) |
//! | `amd` | AMD (1022:148B) |
//! | `ivshmem` | memory that two virtual machines share (1AF4:1110) |
//! | `plugged` | a function of a model as [`ntbring_pci::Function`], within one process |

mod amd;
mod cable;
mod config_space;
mod host_side;
mod icx;
mod intel;
mod ivshmem;
mod joined;
mod model;
mod plugged;
mod plx;
mod plx_switch;
mod side;
mod skx;

pub use cable::{Cable, Chip, Counts, End};
pub use config_space::{BarMask, ConfigSpace};
pub use host_side::HostSide;
pub use ivshmem::Ivshmem;
pub use model::Model;
pub use plugged::Plugged;
pub use plx::{Plx87, RANGE_MIN};
pub use plx_switch::READER_ID;
