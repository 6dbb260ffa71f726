//! Descriptions of networks: their hosts and cables.

use super::record::{Peer, Ports};
use super::{Graph, Hwid, HOSTS_MAX, PORTS};
use std::collections::{BTreeMap, BTreeSet};

/// Port of a host in a ring towards the previous host.
pub const LEFT: u8 = 0;
/// Port of a host in a ring towards the next host.
pub const RIGHT: u8 = 1;

/// Ports of a host in a torus towards the rows above and below.
const UP: u8 = 2;
const DOWN: u8 = 3;

/// Hardware id of the first host of a named shape.
const FIRST: u64 = 101;

/// Layout of a network in drawings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Hosts on a circle.
    Circle,
    /// Hosts in rows of this length.
    Rows(usize),
}

/// A cable between two ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cable {
    /// Index of the host and its port, for both ends.
    pub ends: [(usize, u8); 2],
    /// Cost of a hop over the cable.
    pub weight: u32,
    /// Name of the link model that the description gives for the cable.
    pub model: Option<String>,
    /// True if the cable can be used.
    pub up: bool,
}

/// A network of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Name of the network.
    pub name: String,
    /// Hardware ids of the hosts.
    pub hosts: Vec<Hwid>,
    /// The cables.
    pub cables: Vec<Cable>,
    /// Layout in drawings.
    pub layout: Layout,
}

/// Error: an invalid description of a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// The text is not the name of a shape.
    #[error("{0:?} is not a network; allowed: ring:N, line:N, broken-ring:N, torus:WxH")]
    Name(String),
    /// The number of hosts is 0 or too large.
    #[error("a network has 1 to {HOSTS_MAX} hosts, not {0}")]
    Hosts(usize),
    /// A line of a list of links is invalid.
    #[error("line {line}: {what}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// Description of the problem.
        what: String,
    },
    /// The number of distinct hardware ids differs from the number of hosts.
    #[error("{0} different hardware ids are needed, one for each host")]
    Hwids(usize),
}

impl Shape {
    /// Returns the network with this name.
    pub fn parse(text: &str) -> Result<Shape, ShapeError> {
        let wrong = || ShapeError::Name(text.into());
        let (kind, size) = text.split_once(':').ok_or_else(wrong)?;
        let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
        let mut shape = match (kind, size.split_once('x')) {
            ("ring", None) => Shape::ring(number(size)?)?,
            ("broken-ring", None) => {
                let mut shape = Shape::ring(number(size)?)?;
                shape.cables.iter_mut().next_back().into_iter().for_each(|cable| cable.up = false);
                shape
            }
            ("line", None) => {
                let mut shape = Shape::ring(number(size)?)?;
                shape.cables.pop();
                shape.layout = Layout::Rows(shape.hosts.len());
                shape
            }
            ("torus", Some((width, height))) => Shape::torus(number(width)?, number(height)?)?,
            _ => return Err(wrong()),
        };
        shape.name = text.into();
        Ok(shape)
    }

    fn of(hosts: usize, layout: Layout) -> Result<Shape, ShapeError> {
        if !(1..=HOSTS_MAX).contains(&hosts) {
            return Err(ShapeError::Hosts(hosts));
        }
        let hosts = (0..hosts as u64).map(|host| Hwid(FIRST + host)).collect();
        Ok(Shape { name: String::new(), hosts, cables: Vec::new(), layout })
    }

    fn join(&mut self, from: (usize, u8), to: (usize, u8)) {
        if from.0 != to.0 {
            self.cables.push(Cable { ends: [from, to], weight: 1, model: None, up: true });
        }
    }

    /// Returns a ring of this many hosts: the right port of each is connected to the left port of the next.
    pub fn ring(hosts: usize) -> Result<Shape, ShapeError> {
        let mut shape = Shape::of(hosts, Layout::Circle)?;
        for host in 0..hosts {
            shape.join((host, RIGHT), ((host + 1) % hosts, LEFT));
        }
        Ok(shape)
    }

    /// Returns a torus, whose rows and columns are rings: right ports are connected to left ones, lower ports to
    /// upper ones.
    pub fn torus(width: usize, height: usize) -> Result<Shape, ShapeError> {
        let mut shape = Shape::of(width.saturating_mul(height), Layout::Rows(width))?;
        for host in 0..width * height {
            let (x, y) = (host % width, host / width);
            shape.join((host, RIGHT), (y * width + (x + 1) % width, LEFT));
            shape.join((host, DOWN), ((y + 1) % height * width + x, UP));
        }
        Ok(shape)
    }

    /// Returns the network that a list of links describes. A line has the form `HWID.PORT HWID.PORT`, optionally
    /// followed by `down`, `weight=N` or `model=NAME`. A `#` begins a comment.
    ///
    /// `weigh` returns the weight of a cable for the name of a link model (1 for "none"), or an error text.
    pub fn from_links(text: &str, weigh: impl Fn(&str) -> Result<u32, String>) -> Result<Shape, ShapeError> {
        let mut shape = Shape::of(1, Layout::Circle)?;
        shape.hosts.clear();
        let mut used = BTreeSet::new();
        for (number, text) in text.lines().enumerate() {
            let wrong = |what: String| ShapeError::Line { line: number + 1, what };
            let mut words = text.split('#').next().unwrap_or("").split_whitespace();
            let Some(first) = words.next() else { continue };
            let mut ends = [(0, 0); 2];
            for (end, word) in ends.iter_mut().zip([Some(first), words.next()]) {
                let (hwid, port) = port(word.unwrap_or("")).map_err(wrong)?;
                let known = shape.hosts.iter().position(|host| *host == hwid);
                let host = known.unwrap_or_else(|| {
                    shape.hosts.push(hwid);
                    shape.hosts.len() - 1
                });
                if !used.insert((host, port)) {
                    return Err(wrong(format!("port {port} of host {hwid} has a cable already")));
                }
                *end = (host, port);
            }
            let mut cable = Cable { ends, weight: 1, model: None, up: true };
            for word in words {
                match word.split_once('=') {
                    None if word == "down" => cable.up = false,
                    Some(("weight", value)) => {
                        let weight = value.parse().ok().filter(|weight| *weight > 0);
                        cable.weight = weight.ok_or_else(|| wrong(format!("{value:?} is no weight")))?;
                    }
                    Some(("model", value)) => {
                        let weight = weigh(value).map_err(|problem| wrong(format!("link model: {problem}")))?;
                        (cable.weight, cable.model) = (weight, (value != "none").then(|| value.to_string()));
                    }
                    _ => return Err(wrong(format!("{word:?} is none of down, weight=N, model=NAME"))),
                }
            }
            shape.cables.push(cable);
        }
        match shape.hosts.len() {
            hosts @ (0 | 65..) => Err(ShapeError::Hosts(hosts)),
            _ => Ok(shape),
        }
    }

    /// Sets the hardware ids of the hosts, in order.
    pub fn set_hwids(&mut self, hwids: &[u64]) -> Result<(), ShapeError> {
        let different: BTreeSet<_> = hwids.iter().collect();
        if hwids.len() != self.hosts.len() || different.len() != hwids.len() {
            return Err(ShapeError::Hwids(self.hosts.len()));
        }
        self.hosts = hwids.iter().copied().map(Hwid).collect();
        Ok(())
    }

    /// Returns the graph that managers would find if all cables were in the described state, seen from a host.
    pub fn graph(&self, root: usize) -> Graph {
        let mut hosts: BTreeMap<Hwid, Ports> = self.hosts.iter().map(|hwid| (*hwid, Ports::default())).collect();
        for cable in self.cables.iter().filter(|cable| cable.up) {
            let [a, b] = cable.ends;
            for ((from, port), (to, there)) in [(a, b), (b, a)] {
                let peer = Peer { hwid: self.hosts[to], port: there, weight: cable.weight };
                hosts.entry(self.hosts[from]).or_default()[usize::from(port)] = Some(peer);
            }
        }
        Graph::new(self.hosts[root], hosts)
    }
}

/// Parses `HWID.PORT`.
fn port(word: &str) -> Result<(Hwid, u8), String> {
    let hwid = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let parts = word.split_once('.').and_then(|(host, port)| Some((Hwid(hwid(host)?), port.parse().ok()?)));
    let in_range = parts.filter(|(_, port)| usize::from(*port) < PORTS);
    in_range.ok_or_else(|| format!("{word:?} is no HWID.PORT with a port from 0 to {}", PORTS - 1))
}
