//! One adapter of this host: its chip, the memory that the neighbour writes, and the state of the link.
//!
//! | file | holds |
//! |---|---|
//! | `state` | the adapter, the state of its link, and what others ask of it |
//! | `serve` | the work of the thread that serves it: interrupts, and bringing the link up |
//! | `slices` | the slices of its window |
//! | `exposures` | memory of processes behind the window |
//! | `board` | the texts that the agents at both ends write for each other |
//! | `measuring` | measuring the link |

mod board;
mod exposures;
mod measuring;
mod serve;
mod slices;
mod state;

pub use exposures::ExposedMemory;
pub(crate) use slices::doorbell_of;
pub use slices::SliceUse;
pub use state::{Adapter, Listener};
