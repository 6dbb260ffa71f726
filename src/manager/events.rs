//! What goes into a manager and what comes out.

use super::packet::PacketError;
use super::{Hwid, Table, PORTS};
use std::sync::Arc;
use std::time::Duration;

/// What happens to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event<'a> {
    /// The link at a port can be used, or has another weight from now on.
    PortUp {
        /// The port.
        port: u8,
        /// What a hop over it costs; not 0.
        weight: u32,
    },
    /// The link at a port cannot be used.
    PortDown {
        /// The port.
        port: u8,
    },
    /// A packet has come.
    Packet {
        /// By this port.
        port: u8,
        /// The packet.
        bytes: &'a [u8],
    },
    /// It is as late as [`Action::Timer`] said, or later.
    Tick,
    /// A job begins or ceases to use this host. Hosts keep their local ids while a job runs.
    Busy(bool),
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a packet. Packets of one port must stay in order; they may be lost if the link goes down.
    Send {
        /// By this port.
        port: u8,
        /// The packet, at most [`super::packet::PACKET_MAX`] bytes.
        bytes: Vec<u8>,
    },
    /// There is a new table.
    Table {
        /// The table.
        table: Arc<Table>,
        /// Whether hosts have other local ids than before: what anybody has sent by the old tables must have
        /// arrived or be given up before anything is sent by the new ones (docs/protocol.md).
        renumbered: bool,
    },
    /// Another host is the master from now on.
    Master(Hwid),
    /// When the next [`Event::Tick`] is due; it replaces what was said before. None: not at all.
    Timer(Option<Duration>),
}

/// What a manager cannot take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManagerError {
    /// There is no such port.
    #[error("a host has ports 0 to {last}, not {0}", last = PORTS - 1)]
    Port(u8),
    /// A link cannot cost nothing.
    #[error("the link at port {0} must have a weight of at least 1")]
    Weight(u8),
    /// A neighbour has sent what is no packet of ours.
    #[error("a packet of the network manager that came by port {port} cannot be understood: {error}")]
    Packet {
        /// By which port it came.
        port: u8,
        /// What is wrong.
        error: PacketError,
    },
}
