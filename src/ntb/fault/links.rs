//! Names of links, and the position of a process in the ring, which determines its links.

use crate::Side;
use std::fmt;

/// The position of a process: its host, its number there, and the host's neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The host's number in the ring.
    pub host: usize,
    /// The process's number among the processes of the host.
    pub process: usize,
    /// The numbers of the neighbour hosts, left and right.
    pub neighbours: [usize; 2],
}

/// Name of one link, or of one link per host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkName {
    /// The links of the ports on this side of all hosts, in the direction in which these ports send.
    Side(Side),
    /// The link between two hosts, in both directions. A ring of two hosts has two such links; then it is the link from
    /// the right port of the first host to the left port of the second.
    Between(u16, u16),
}

impl LinkName {
    /// Parses `left`, `right`, or two host numbers such as `0-1`.
    pub fn parse(text: &str) -> Result<LinkName, String> {
        let host = |text: &str| text.trim().parse::<u16>().ok();
        let pair = || text.split_once('-').and_then(|(a, b)| Some(LinkName::Between(host(a)?, host(b)?)));
        match text {
            "left" => Ok(LinkName::Side(Side::Left)),
            "right" => Ok(LinkName::Side(Side::Right)),
            _ => pair().ok_or_else(|| format!("{text:?} is no link: left, right, or two hosts such as 0-1")),
        }
    }

    /// Returns true if the port on `side` of a process at `place` sends through this link.
    pub fn covers(self, place: &Place, side: Side) -> bool {
        let (a, b) = match self {
            LinkName::Side(of) => return of == side,
            LinkName::Between(a, b) => (usize::from(a), usize::from(b)),
        };
        let [left, right] = place.neighbours;
        let ends = match side {
            Side::Left => (left, place.host),
            Side::Right => (place.host, right),
        };
        // With more than two hosts the order of the two names is irrelevant.
        ends == (a, b) || left != right && ends == (b, a)
    }
}

impl fmt::Display for LinkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkName::Side(side) => write!(f, "{side}"),
            LinkName::Between(a, b) => write!(f, "{a}-{b}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(host: usize, hosts: usize) -> Place {
        Place { host, process: 0, neighbours: [(host + hosts - 1) % hosts, (host + 1) % hosts] }
    }

    /// Returns the ports (host and side) that send through a link.
    fn covered(name: &str, hosts: usize) -> Vec<(usize, Side)> {
        let name = LinkName::parse(name).unwrap();
        let all = (0..hosts).flat_map(|host| Side::BOTH.map(|side| (host, side)));
        all.filter(|&(host, side)| name.covers(&place(host, hosts), side)).collect()
    }

    #[test]
    fn a_link_has_two_ends() {
        use Side::{Left, Right};
        for name in ["1-2", "2-1"] {
            assert_eq!(covered(name, 4), [(1, Right), (2, Left)], "{name}");
        }
        assert_eq!(covered("3-0", 4), [(0, Left), (3, Right)]);
        assert!(covered("0-2", 4).is_empty());
        assert_eq!(covered("0-1", 2), [(0, Right), (1, Left)]);
        assert_eq!(covered("1-0", 2), [(0, Left), (1, Right)]);
        assert_eq!(covered("left", 3), [(0, Left), (1, Left), (2, Left)]);
    }

    #[test]
    fn names_that_are_none() {
        for text in ["", "up", "1", "1-", "-1", "0-1-2", "0-70000", "a-b"] {
            assert!(LinkName::parse(text).unwrap_err().contains("is no link"), "{text}");
        }
    }
}
