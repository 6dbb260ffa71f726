//! The ports of a host that the ring uses. Only here a direction of the ring becomes a port's number.

use ntbring_ntb::{PortIndex, PortList, Side};
use std::fmt;

/// The two ports of a host that the ring uses (`NTBRING_PORTS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPorts {
    left: PortIndex,
    right: PortIndex,
}

impl RingPorts {
    /// Returns the ports with these numbers; None if they are the same, or if a number is too large.
    pub fn new(left: u8, right: u8) -> Option<RingPorts> {
        let ports = RingPorts { left: PortIndex::new(left)?, right: PortIndex::new(right)? };
        (left != right).then_some(ports)
    }

    /// Parses two numbers such as `0,1`: the left port's, then the right port's.
    pub fn parse(text: &str) -> Result<RingPorts, String> {
        let number = |text: &str| {
            let index = text.trim().parse().ok().and_then(PortIndex::new);
            index.ok_or_else(|| format!("{text:?} is no port: they are numbered 0 to {}", PortIndex::MAX_PORTS - 1))
        };
        let (left, right) = text.split_once(',').ok_or("two ports are needed, such as 0,1")?;
        match (number(left)?, number(right)?) {
            (left, right) if left == right => Err("one port cannot lead to both neighbours".into()),
            (left, right) => Ok(RingPorts { left, right }),
        }
    }

    /// Returns the port that leads to the neighbour on `side`.
    pub fn on(self, side: Side) -> PortIndex {
        match side {
            Side::Left => self.left,
            Side::Right => self.right,
        }
    }

    /// Returns both ports as the list of the ports that the host uses, left first.
    pub fn list(self) -> PortList {
        PortList::new(&[self.left, self.right]).expect("they are different")
    }
}

impl Default for RingPorts {
    /// Returns the ports 0 and 1.
    fn default() -> RingPorts {
        let [left, right, ..] = PortIndex::ALL;
        RingPorts { left, right }
    }
}

impl fmt::Display for RingPorts {
    /// Writes the ports in the form that [`RingPorts::parse`] accepts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.left, self.right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_two_different_numbers() {
        for (text, left, right) in [("0,1", 0, 1), ("2,3", 2, 3), ("1,0", 1, 0), ("3, 0", 3, 0)] {
            let ports = RingPorts::parse(text).unwrap();
            assert_eq!(Side::BOTH.map(|side| ports.on(side).get()), [left, right]);
            assert_eq!(RingPorts::new(left, right), Some(ports));
            assert_eq!(RingPorts::parse(&ports.to_string()), Ok(ports));
            assert_eq!(ports.list().ports(), [ports.on(Side::Left), ports.on(Side::Right)]);
        }
        assert_eq!(RingPorts::parse("0,1"), Ok(RingPorts::default()));
        for (text, problem) in [
            ("", "two ports are needed"),
            ("0", "two ports are needed"),
            ("0,4", "\"4\" is no port"),
            ("-1,0", "\"-1\" is no port"),
            ("0,1,2", "\"1,2\" is no port"),
            (",1", "\"\" is no port"),
            ("left,right", "\"left\" is no port"),
            ("2,2", "one port cannot lead to both"),
        ] {
            let error = RingPorts::parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
        assert!(RingPorts::new(1, 1).is_none() && RingPorts::new(0, 4).is_none());
    }
}
