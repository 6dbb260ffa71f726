//! State of a host's ports, and the neighbours at their other ends.

use super::record::{Peer, Ports};
use super::{Hwid, ManagerError, Path, PORTS};
use std::time::Duration;

/// State of a port as seen by its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Port {
    Down,
    Up {
        weight: u32,
        /// Hardware id of the neighbour and its port, once known.
        peer: Option<(Hwid, u8)>,
        /// Time of the next request to the neighbour, while the neighbour is unknown.
        greet: Duration,
    },
}

/// The ports of a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PortStates([Port; PORTS]);

impl PortStates {
    /// Returns ports that are all down.
    pub fn new() -> PortStates {
        PortStates([Port::Down; PORTS])
    }

    fn port(&mut self, port: u8) -> Result<&mut Port, ManagerError> {
        self.0.get_mut(usize::from(port)).ok_or(ManagerError::Port(port))
    }

    /// Sets a port up, or its weight. Returns true if other hosts should be informed.
    pub fn up(&mut self, now: Duration, port: u8, weight: u32) -> Result<bool, ManagerError> {
        let state = self.port(port)?;
        if weight == 0 {
            return Err(ManagerError::Weight(port));
        }
        if let Port::Up { weight: old, peer, .. } = state {
            return Ok(std::mem::replace(old, weight) != weight && peer.is_some());
        }
        *state = Port::Up { weight, peer: None, greet: now };
        Ok(false)
    }

    /// Sets a port down. Returns true if other hosts should be informed.
    pub fn down(&mut self, port: u8) -> Result<bool, ManagerError> {
        Ok(matches!(std::mem::replace(self.port(port)?, Port::Down), Port::Up { peer: Some(_), .. }))
    }

    /// Returns true if the port is up.
    pub fn is_up(&self, port: u8) -> bool {
        matches!(self.0.get(usize::from(port)), Some(Port::Up { .. }))
    }

    /// Records the neighbour at a port. Returns true if it differs from the one known before.
    pub fn meet(&mut self, port: u8, hwid: Hwid, there: u8) -> bool {
        match self.0.get_mut(usize::from(port)) {
            Some(Port::Up { peer, .. }) => peer.replace((hwid, there)) != Some((hwid, there)),
            _ => false,
        }
    }

    /// Returns the paths to unknown neighbours to which a request is due now. The next request is due after `wait`.
    pub fn greetings(&mut self, now: Duration, wait: Duration) -> Vec<Path> {
        let mut ways = Vec::new();
        for (port, state) in self.0.iter_mut().enumerate() {
            if let Port::Up { peer: None, greet, .. } = state {
                if *greet <= now {
                    *greet = now + wait;
                    ways.extend(Path::EMPTY.then(port as u8));
                }
            }
        }
        ways
    }

    /// Returns the time at which the next request to an unknown neighbour is due.
    pub fn due(&self) -> Option<Duration> {
        let greet = |port: &Port| match port {
            Port::Up { peer: None, greet, .. } => Some(*greet),
            _ => None,
        };
        self.0.iter().filter_map(greet).min()
    }

    /// The ports in the form in which they are reported to other hosts.
    pub fn record(&self) -> Ports {
        self.0.map(|port| match port {
            Port::Up { weight, peer: Some((hwid, port)), .. } => Some(Peer { hwid, port, weight }),
            _ => None,
        })
    }
}
