//! Failures of ranks and links, and their effect on a rank.
//!
//! | file | holds |
//! |---|---|
//! | `link_set` | a set of links of a ring |
//! | `peer_losses` | peers that are unreachable because ranks have died or links have gone down |
//! | `outage_flood` | propagation of links that have gone down to all hosts |

mod link_set;
mod outage_flood;
mod peer_losses;

pub use link_set::LinkSet;
pub use outage_flood::OutageFlood;
pub use peer_losses::{Dead, Failures, PathFailure, PeerLoss};

pub(crate) use peer_losses::{forwarder, peer_losses, FailureScope};
