//! Failures of ranks and links, and their effect on a rank.
//!
//! | file | holds |
//! |---|---|
//! | `link_set` | a set of links of a ring |
//! | `losses` | peers that are unreachable because ranks have died or links have gone down |
//! | `herald` | propagation of links that have gone down to all hosts |

mod herald;
mod link_set;
mod losses;

pub use herald::Herald;
pub use link_set::LinkSet;
pub use losses::{Damage, Dead, Loss, Obstacle};

pub(crate) use losses::{forwarder, losses, Bond};
