//! A route as a list of port numbers.

use super::{HOSTS_MAX, PORTS};
use serde::{Serialize, Serializer};
use std::fmt;

/// The most hops of a route: it passes no host twice.
pub const HOPS_MAX: usize = HOSTS_MAX - 1;

/// Bits of a port number.
const BITS: usize = 2;

/// The ports by which a packet leaves one host after the other, or by which it came.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    hops: u8,
    /// Port of hop i in bits 2i and 2i + 1; 0 beyond the last.
    ports: u128,
}

impl Path {
    /// Bytes that the ports take on the wire, without their number.
    pub const BYTES: usize = 16;

    /// The path of no hop.
    pub const EMPTY: Path = Path { hops: 0, ports: 0 };

    /// The path of these ports. None if it is too long or there is no such port.
    pub fn of(ports: &[u8]) -> Option<Path> {
        ports.iter().try_fold(Path::EMPTY, |path, &port| path.then(port))
    }

    /// This path and one hop more. None if it is too long or there is no such port.
    pub fn then(self, port: u8) -> Option<Path> {
        let fits = usize::from(self.hops) < HOPS_MAX && usize::from(port) < PORTS;
        fits.then(|| Path { hops: self.hops + 1, ports: self.ports | u128::from(port) << (BITS * self.len()) })
    }

    /// Number of hops.
    pub fn len(self) -> usize {
        self.hops.into()
    }

    /// Whether it has no hop.
    pub fn is_empty(self) -> bool {
        self.hops == 0
    }

    /// The port of a hop.
    pub fn get(self, hop: usize) -> Option<u8> {
        (hop < self.len()).then(|| (self.ports >> (BITS * hop)) as u8 & (PORTS as u8 - 1))
    }

    /// The ports, one after the other.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = u8> {
        (0..self.len()).filter_map(move |hop| self.get(hop))
    }

    /// The ports in the opposite order.
    pub fn reversed(self) -> Path {
        self.iter().rev().fold(Path::EMPTY, |path, port| path.then(port).unwrap_or(path))
    }

    /// As on the wire.
    pub fn bytes(self) -> [u8; Path::BYTES] {
        self.ports.to_le_bytes()
    }

    /// From the wire. None if it is too long, or if there is something beyond its end.
    pub fn parse(hops: u8, bytes: [u8; Path::BYTES]) -> Option<Path> {
        let ports = u128::from_le_bytes(bytes);
        let short = usize::from(hops) <= HOPS_MAX;
        (short && ports >> (BITS * usize::from(hops)) == 0).then_some(Path { hops, ports })
    }
}

/// The ports with commas between them.
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
