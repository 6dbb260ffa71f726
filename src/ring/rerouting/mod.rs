//! Routes around links that are down, in rings that retransmit (`NTBRING_RELIABILITY=retry`).
//!
//! | file | holds |
//! |---|---|
//! | `hysteresis` | hysteresis of link states |
//! | `manager_driver` | driver of the network manager in a job |
//! | `routing_table` | the current routes of a host, published to all its ranks |

mod hysteresis;
pub mod manager_driver;
pub mod routing_table;
