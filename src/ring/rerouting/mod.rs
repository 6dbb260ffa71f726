//! Routes around links that are down, in rings that retransmit (`NTBRING_RELIABILITY=retry`).
//!
//! | file | holds |
//! |---|---|
//! | `probation` | hysteresis of link states |
//! | `steward` | driver of the network manager in a job |
//! | `ways` | the current routes of a host, published to all its ranks |

mod probation;
pub mod steward;
pub mod ways;
