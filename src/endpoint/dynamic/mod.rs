//! Peers that are added after the ring was joined: processes outside it.
//!
//! | file | holds |
//! |---|---|
//! | `external_peer` | one such process, and its departure |
//! | `external_peers` | all of them, with their lanes |
//! | `dpm_messages` | messages between two processes that have no communicator in common yet |

mod dpm_messages;
mod external_peer;
mod external_peers;

pub use dpm_messages::{DpmMessages, DPM_MAX};
pub use external_peers::{Called, ExternalPeers};

/// Peers of a rank outside its job.
pub struct Dynamic {
    pub external_peers: ExternalPeers,
    pub dpm_messages: DpmMessages,
}
