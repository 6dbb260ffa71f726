//! A route as a list of port numbers.

use super::{HOSTS_MAX, PORTS};
use serde::{Serialize, Serializer};
use std::fmt;

/// Largest number of hops in a route: it passes no host twice.
pub const HOPS_MAX: usize = HOSTS_MAX - 1;

/// Number of bits of a port number.
const BITS: usize = 2;

/// The ports by which a packet leaves each host in turn, or by which it arrives at each.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    hops: u8,
    /// Port of hop i in bits 2i and 2i + 1; 0 beyond the last hop.
    ports: u128,
}

impl Path {
    /// Size of the encoded ports in bytes, without the number of hops.
    pub const BYTES: usize = 16;

    /// The path without hops.
    pub const EMPTY: Path = Path { hops: 0, ports: 0 };

    /// Returns the path of these ports; None if it is too long or a port does not exist.
    pub fn of(ports: &[u8]) -> Option<Path> {
        ports.iter().try_fold(Path::EMPTY, |path, &port| path.then(port))
    }

    /// Returns this path with one more hop; None if it is too long or the port does not exist.
    pub fn then(self, port: u8) -> Option<Path> {
        let fits = usize::from(self.hops) < HOPS_MAX && usize::from(port) < PORTS;
        fits.then(|| Path { hops: self.hops + 1, ports: self.ports | u128::from(port) << (BITS * self.len()) })
    }

    /// Number of hops.
    pub fn len(self) -> usize {
        self.hops.into()
    }

    /// Returns true if the path has no hops.
    pub fn is_empty(self) -> bool {
        self.hops == 0
    }

    /// Returns the port of a hop.
    pub fn get(self, hop: usize) -> Option<u8> {
        (hop < self.len()).then(|| (self.ports >> (BITS * hop)) as u8 & (PORTS as u8 - 1))
    }

    /// Returns the ports in order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = u8> {
        (0..self.len()).filter_map(move |hop| self.get(hop))
    }

    /// Returns the ports in reverse order.
    pub fn reversed(self) -> Path {
        self.iter().rev().fold(Path::EMPTY, |path, port| path.then(port).unwrap_or(path))
    }

    /// Encodes the ports for the wire.
    pub fn bytes(self) -> [u8; Path::BYTES] {
        self.ports.to_le_bytes()
    }

    /// Decodes a path. Returns None if it is too long, or if bits beyond its end are set.
    pub fn parse(hops: u8, bytes: [u8; Path::BYTES]) -> Option<Path> {
        let ports = u128::from_le_bytes(bytes);
        let short = usize::from(hops) <= HOPS_MAX;
        (short && ports >> (BITS * usize::from(hops)) == 0).then_some(Path { hops, ports })
    }
}

/// Prints the ports with commas between them.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (hop, port) in self.iter().enumerate() {
            write!(f, "{}{port}", if hop > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_end_where_they_must() {
        let longest = Path::of(&[3; HOPS_MAX]).unwrap();
        assert_eq!((longest.then(0), longest.len(), longest.get(HOPS_MAX)), (None, HOPS_MAX, None));
        assert_eq!(Path::of(&[4]), None);
        assert_eq!(Path::of(&[2, 0]).unwrap().to_string(), "2,0");
        assert_eq!(Path::parse(1, Path::of(&[2, 1]).unwrap().bytes()), None);
        assert_eq!(Path::parse(64, [0; 16]), None);
    }

    proptest! {
        #[test]
        fn ports_survive(ports in proptest::collection::vec(0u8..4, 0..=HOPS_MAX)) {
            let path = Path::of(&ports).unwrap();
            prop_assert_eq!(path.iter().collect::<Vec<_>>(), ports.clone());
            prop_assert_eq!(path.reversed().iter().collect::<Vec<_>>(), ports.into_iter().rev().collect::<Vec<_>>());
            prop_assert_eq!(Path::parse(path.len() as u8, path.bytes()), Some(path));
        }
    }
}
