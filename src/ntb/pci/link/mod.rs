//! Bringing a link up: two neighbours introduce themselves to each other and test that writes arrive, each time that
//! the link has come up.
//!
//! | file | holds |
//! |---|---|
//! | `introduction` | the introduction of a host, and its encoding in 32-bit parts |
//! | `setup` | the state machine, without I/O |

mod introduction;
mod setup;

pub use introduction::Introduction;
pub use setup::{Action, Inputs, LinkSetup, Phase, SetupError, ARRIVAL, CONFIRMATION, REGISTERS};
