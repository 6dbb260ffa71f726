//! Input and output of a manager.

use super::format::PacketError;
use super::{Hwid, Table, PORTS};
use std::sync::Arc;
use std::time::Duration;

/// An event at a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event<'a> {
    /// The link at a port can be used, or its weight has changed.
    PortUp {
        /// Number of the port.
        port: u8,
        /// Cost of a hop over the link; not 0.
        weight: u32,
    },
    /// The link at a port cannot be used.
    PortDown {
        /// Number of the port.
        port: u8,
    },
    /// A packet has arrived.
    Packet {
        /// Port by which it arrived.
        port: u8,
        /// Bytes of the packet.
        bytes: &'a [u8],
    },
    /// The time given by [`Action::Timer`] has come.
    Tick,
    /// A job begins or ceases to use this host. Hosts keep their local ids while a job runs.
    Busy(bool),
}

/// An action that the caller must take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a packet. Packets of one port must stay in order; they may be lost if the link goes down.
    Send {
        /// Port by which to send it.
        port: u8,
        /// Bytes of the packet, at most [`crate::PACKET_MAX`].
        bytes: Vec<u8>,
    },
    /// Use a new routing table.
    Table {
        /// The table.
        table: Arc<Table>,
        /// True if local ids of hosts have changed. All packets sent by the old tables must then have arrived or been
        /// dropped before any packet is sent by the new ones (docs/protocol.md).
        renumbered: bool,
    },
    /// Another host is the master from now on.
    Master(Hwid),
    /// Set the timer for the next [`Event::Tick`], in place of the previous time. None: cancel it.
    Timer(Option<Duration>),
}

/// Error: input that a manager cannot process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManagerError {
    /// The port does not exist.
    #[error("a host has ports 0 to {last}, not {0}", last = PORTS - 1)]
    Port(u8),
    /// The weight of a link is 0.
    #[error("the link at port {0} must have a weight of at least 1")]
    Weight(u8),
    /// A neighbour has sent an invalid packet.
    #[error("invalid packet of the network manager, received by port {port}: {error}")]
    Packet {
        /// Port by which it arrived.
        port: u8,
        /// Description of the problem.
        error: PacketError,
    },
}
