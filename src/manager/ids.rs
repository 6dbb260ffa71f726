//! Limits of a network, and the two ids of a host.

use serde::Serialize;
use std::fmt;

/// Number of ports that a host can have.
pub const PORTS: usize = 4;

/// Largest number of hosts in one network. More distant hosts are not discovered.
pub const HOSTS_MAX: usize = 64;

/// Largest number of lane classes that routes can use.
pub const CLASSES_MAX: u8 = 4;

/// Hardware id of a host, unique in its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Hwid(pub u64);

impl fmt::Display for Hwid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            small @ 0..=99_999 => write!(f, "{small}"),
            large => write!(f, "{large:#x}"),
        }
    }
}

/// Local id, assigned to a host by the master: 1 to [`HOSTS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Lid(pub u8);

impl fmt::Display for Lid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns the increase of the class when a packet that came from `before` continues to `next`.
pub fn class_step(before: Lid, here: Lid, next: Lid) -> u8 {
    u8::from(before < here && next < here)
}
