//! Forwarding of packets in transit through a host, while its ranks compute.
//!
//! | file | holds |
//! |---|---|
//! | `route` | source and destination of a packet, and which packets a host may forward |
//! | `relay_counters` | counters of a forwarder |
//! | `own_packet` | packets that a forwarder sends by itself |
//! | `thread_split` | division of a host's forwarding among threads |
//! | `forwarder_state` | state that all transit channels of a host share |
//! | `transit_channel` | forwarding of the packets of one class that leave to one side |
//! | `relay` | the forwarder: its transit channels in order of priority, and the network manager's lanes |
//! | `forwarder_threads` | the threads in which forwarders run |

#[cfg(test)]
mod explorer;
mod forwarder_state;
pub mod forwarder_threads;
mod own_packet;
pub mod relay;
mod relay_counters;
mod route;
pub mod thread_split;
mod transit_channel;
