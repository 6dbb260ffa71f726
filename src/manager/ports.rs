//! The ports of a host: which are up, and who is at the other end.

use super::record::{Peer, Ports};
use super::{Hwid, ManagerError, Path, PORTS};
use std::time::Duration;

/// A port as its host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Port {
    Down,
    Up {
        weight: u32,
        /// Who is at the other end, and by which port.
        peer: Option<(Hwid, u8)>,
        /// When the other end is greeted next, if nobody is known there.
        greet: Duration,
    },
}

/// The ports of a host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PortStates([Port; PORTS]);

impl PortStates {
    /// All are down.
    pub fn new() -> PortStates {
        PortStates([Port::Down; PORTS])
    }

    fn port(&mut self, port: u8) -> Result<&mut Port, ManagerError> {
        self.0.get_mut(usize::from(port)).ok_or(ManagerError::Port(port))
    }

    /// A port is up, or has another weight. True if others should hear of it.
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

    /// A port is down. True if others should hear of it.
    pub fn down(&mut self, port: u8) -> Result<bool, ManagerError> {
        Ok(matches!(std::mem::replace(self.port(port)?, Port::Down), Port::Up { peer: Some(_), .. }))
    }

    /// Whether a port is up.
    pub fn is_up(&self, port: u8) -> bool {
        matches!(self.0.get(usize::from(port)), Some(Port::Up { .. }))
    }

    /// Somebody is at the other end of a port. True if that is news.
    pub fn meet(&mut self, port: u8, hwid: Hwid, there: u8) -> bool {
        match self.0.get_mut(usize::from(port)) {
            Some(Port::Up { peer, .. }) => peer.replace((hwid, there)) != Some((hwid, there)),
            _ => false,
        }
    }

    /// The ways to those who are to be greeted now. They will be again after `wait`.
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

    /// When the next greeting is due.
    pub fn due(&self) -> Option<Duration> {
        let greet = |port: &Port| match port {
            Port::Up { peer: None, greet, .. } => Some(*greet),
            _ => None,
        };
        self.0.iter().filter_map(greet).min()
    }

    /// What is said of them.
    pub fn record(&self) -> Ports {
        self.0.map(|port| match port {
            Port::Up { weight, peer: Some((hwid, port)), .. } => Some(Peer { hwid, port, weight }),
            _ => None,
        })
    }
}
