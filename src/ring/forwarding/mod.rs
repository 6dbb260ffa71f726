//! Forwarding of packets in transit through a host, while its ranks compute.
//!
//! | file | holds |
//! |---|---|
//! | `route` | source and destination of a packet, and which packets a host may forward |
//! | `tally` | counters of a forwarder |
//! | `crew` | division of a host's forwarding among threads |
//! | `desk` | state that all tracks of a host share |
//! | `track` | the traffic of one class that leaves to one side |
//! | `relay` | the forwarder: its tracks in order of priority, and the network manager's lanes |
//! | `transfer` | the threads in which forwarders run |

pub mod crew;
mod desk;
#[cfg(test)]
mod explorer;
pub mod relay;
mod route;
mod tally;
mod track;
pub mod transfer;
