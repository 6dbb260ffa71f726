//! A host's announcement to all other hosts.

use serde::{Deserialize, Serialize};

/// Longest way of a circuit, in steps: a ring of the most hosts.
pub const STEPS_MAX: usize = 64;

/// A host's announcement of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announcement {
    /// Identity of the host: a random number that its agent has chosen.
    pub host: u64,
    /// Number of this announcement; a later one replaces an earlier one.
    pub sequence: u64,
    /// Name of the host, for people.
    pub name: String,
    /// Its links that are up.
    pub cables: Vec<Cable>,
    /// The circuits that begin at it.
    pub circuits: Vec<Circuit>,
}

/// One end of a link that is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cable {
    /// Number of the port.
    pub port: u8,
    /// Identity of the neighbour.
    pub peer: u64,
    /// Number of the neighbour's port.
    pub peer_port: u8,
    /// Number of times that the link has come up at this end.
    pub epoch: u32,
    /// Size of the window of this end, which the neighbour writes, bytes.
    pub window: u64,
    /// Rate at which this end could write the neighbour's window when the link had come up, bytes per second.
    pub rate: u64,
}

/// A circuit: writes of one host that arrive in a slice of a host that may be several links away.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Circuit {
    /// Identity of the circuit: an even random number, not 0. A circuit is never repaired; a new one replaces it.
    pub id: u64,
    /// The user whose job it belongs to.
    pub user: u32,
    /// Key of the slice at the destination.
    pub key: u64,
    /// The hosts on the way, without the first; the destination is the last.
    pub steps: Vec<Step>,
}

/// A link of a circuit's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Step {
    /// Identity of the host to which the link leads.
    pub host: u64,
    /// Number of that host's port.
    pub port: u8,
    /// Epoch of the link at that end.
    pub epoch: u32,
}

impl Announcement {
    /// Returns true if the announcement is one that a host can make: numbers of ports exist, and no list is longer than
    /// allowed.
    pub fn is_valid(&self) -> bool {
        let ports = ntbring_ntb::PortIndex::MAX_PORTS;
        let is_port = |port: u8| usize::from(port) < ports;
        let is_way = |circuit: &Circuit| {
            (1..=STEPS_MAX).contains(&circuit.steps.len()) && circuit.id.is_multiple_of(2) && circuit.id != 0
        };
        self.host != 0
            && self.cables.len() <= ports
            && self.cables.iter().all(|cable| is_port(cable.port) && is_port(cable.peer_port))
            && self.circuits.iter().all(is_way)
    }
}
