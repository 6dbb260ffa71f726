//! Hosts, ports and routes of a simulated network.
//!
//! Routes are chosen by the code that chooses them elsewhere: on rings by [`Topology`], as in a job; on other networks
//! of up to 64 hosts by the tables of the real network manager. Larger tori exceed its limit: there routes lead first
//! along the row, then along the column, each of which is a ring for [`Topology`], with a dateline. On longer lines
//! there is only one route.

use ntbring_manager::class_step;
use ntbring_manager::network::Network;
use ntbring_manager::shape::Shape;
use ntbring_manager::{Hwid, Lid, Rules, HOSTS_MAX as MANAGED_MAX};
use ntbring_ntb::Side;
use ntbring_ring::Topology;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Largest number of hosts that can be simulated.
pub const HOSTS_MAX: usize = 1024;

/// Number of ports of a host: left, right, and in a torus up and down.
pub const PORTS: usize = 4;

const UP: usize = 2;
const DOWN: usize = 3;

/// Number of classes of lanes between forwarders.
pub const CLASSES: usize = 2;

/// The topology of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Each host is connected to the next, and the last to the first.
    Ring(usize),
    /// Each host is connected to the next.
    Line(usize),
    /// Number of hosts in a row, and number of rows; rows and columns are rings.
    Torus(usize, usize),
}

/// Error: the network cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    /// The text names no topology.
    #[error("{0:?} is not a topology; allowed: ring:N, line:N, torus:WxH")]
    Name(String),
    /// There are too many hosts or too few.
    #[error("2 to {HOSTS_MAX} hosts can be simulated, {0} cannot")]
    Hosts(usize),
    /// The network managers did not agree.
    #[error("the network manager: {0}")]
    Manager(String),
}

impl Form {
    /// Returns the number of hosts.
    pub fn hosts(self) -> usize {
        match self {
            Form::Ring(hosts) | Form::Line(hosts) => hosts,
            Form::Torus(width, height) => width.saturating_mul(height),
        }
    }

    /// Returns the host at the other end of a port's cable, and its port there.
    pub fn peer(self, host: usize, port: usize) -> Option<(usize, usize)> {
        let hosts = self.hosts();
        let other = [1, 0, DOWN, UP][port];
        let along = |at: usize, count: usize, back: bool| (at + if back { count - 1 } else { 1 }) % count;
        let peer = match (self, port) {
            (Form::Ring(_), 0 | 1) => along(host, hosts, port == 0),
            (Form::Line(_), 0 | 1) if host != [0, hosts - 1][port] => along(host, hosts, port == 0),
            (Form::Torus(width, _), 0 | 1) => host / width * width + along(host % width, width, port == 0),
            (Form::Torus(width, height), _) => along(host / width, height, port == UP) * width + host % width,
            _ => return None,
        };
        (peer != host).then_some((peer, other))
    }
}

impl FromStr for Form {
    type Err = NetError;

    fn from_str(text: &str) -> Result<Form, NetError> {
        let wrong = || NetError::Name(text.into());
        let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
        let (kind, size) = text.split_once(':').ok_or_else(wrong)?;
        let form = match (kind, size.split_once('x')) {
            ("ring", None) => Form::Ring(number(size)?),
            ("line", None) => Form::Line(number(size)?),
            ("torus", Some((width, height))) => Form::Torus(number(width)?, number(height)?),
            _ => return Err(wrong()),
        };
        match form.hosts() {
            2..=HOSTS_MAX => Ok(form),
            hosts => Err(NetError::Hosts(hosts)),
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Form::Ring(hosts) => write!(f, "ring:{hosts}"),
            Form::Line(hosts) => write!(f, "line:{hosts}"),
            Form::Torus(width, height) => write!(f, "torus:{width}x{height}"),
        }
    }
}

/// A packet's next link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The port by which the packet leaves.
    pub port: u8,
    /// The class of the lane, if the next host is not the destination.
    pub class: u8,
}

/// A network and its routes.
pub struct Net {
    form: Form,
    /// The ring, or each row of a torus.
    rows: Topology,
    columns: Topology,
    /// True if all packets on a ring go to the right.
    one_way: bool,
    /// Hops by source and destination, if managers have computed them.
    tables: Vec<Vec<Box<[Hop]>>>,
    /// Gives all hops class 0, which is wrong: for a test of the resulting deadlock.
    #[cfg(test)]
    pub(super) flat: bool,
}

impl Net {
    /// Returns a network with its routes.
    pub fn new(form: Form, one_way: bool) -> Result<Net, NetError> {
        if !(2..=HOSTS_MAX).contains(&form.hosts()) {
            return Err(NetError::Hosts(form.hosts()));
        }
        let (width, height) = match form {
            Form::Ring(hosts) | Form::Line(hosts) => (hosts, 1),
            Form::Torus(width, height) => (width, height),
        };
        let [rows, columns] = [width, height].map(Topology::simulated);
        let managed = !matches!(form, Form::Ring(_)) && form.hosts() <= MANAGED_MAX;
        let tables = if managed { tables(form)? } else { Vec::new() };
        Ok(Net {
            form,
            rows,
            columns,
            one_way,
            tables,
            #[cfg(test)]
            flat: false,
        })
    }

    /// Returns its topology.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Describes the origin of the routes.
    pub fn routes(&self) -> &'static str {
        match self.form {
            _ if !self.tables.is_empty() => "tables of the network manager",
            Form::Ring(_) if self.one_way => "all to the right",
            Form::Ring(_) => "the shorter way, as in a job without a manager",
            Form::Line(_) => "the only way",
            Form::Torus(..) => "along the row, then along the column",
        }
    }

    /// Returns the side by which a packet leaves its source on a ring; on other networks it has no meaning.
    pub fn side(&self, src: usize, dst: usize) -> Side {
        match self.form {
            Form::Ring(_) if !self.one_way => self.rows.direction(src, dst),
            _ => Side::Right,
        }
    }

    /// Returns the next hop of a packet that has made `hops` hops and is now at host `at`. On a ring a packet keeps its
    /// initial side.
    pub fn next(&self, src: usize, dst: usize, side: Side, at: usize, hops: usize) -> Hop {
        let hop = self.hop(src, dst, side, at, hops);
        #[cfg(test)]
        if self.flat {
            return Hop { class: 0, ..hop };
        }
        hop
    }

    fn hop(&self, src: usize, dst: usize, side: Side, at: usize, hops: usize) -> Hop {
        if let Some(table) = self.tables.get(src) {
            return table[dst][hops];
        }
        let along = |ring: &Topology, from: usize, to: usize, here: usize, ports: [usize; 2]| {
            let side = ring.direction(from, to);
            Hop { port: ports[side as usize] as u8, class: u8::from(ring.beyond_dateline(from, here, side)) }
        };
        match self.form {
            Form::Ring(_) => Hop { port: side as u8, class: u8::from(self.rows.beyond_dateline(src, at, side)) },
            Form::Line(_) => Hop { port: u8::from(dst > at), class: 0 },
            Form::Torus(width, _) if at % width != dst % width => {
                along(&self.rows, src % width, dst % width, at % width, [0, 1])
            }
            Form::Torus(width, _) => along(&self.columns, src / width, dst / width, at / width, [UP, DOWN]),
        }
    }

    /// Returns the number of links between two hosts on the route of packets.
    pub fn distance(&self, src: usize, dst: usize) -> usize {
        let mut hops = 0;
        self.walk(src, dst, |_| hops += 1);
        hops
    }

    /// Follows the route of a packet and calls `crossed` with the number of each link, which is 4 x host + port.
    pub fn walk(&self, src: usize, dst: usize, mut crossed: impl FnMut(usize)) {
        let (side, mut at, mut hops) = (self.side(src, dst), src, 0);
        while at != dst {
            let port = usize::from(self.next(src, dst, side, at, hops).port);
            crossed(at * PORTS + port);
            // All routes lead over existing cables: see the test `every_route_arrives_and_none_can_deadlock`.
            at = self.form.peer(at, port).map_or(dst, |peer| peer.0);
            hops += 1;
        }
    }
}

/// Returns the routes between all hosts, from the tables on which the real managers of such a network agree.
fn tables(form: Form) -> Result<Vec<Vec<Box<[Hop]>>>, NetError> {
    let shape = Shape::parse(&form.to_string()).map_err(|error| NetError::Manager(error.to_string()))?;
    let hosts = shape.hosts.clone();
    let numbers: BTreeMap<Hwid, usize> = hosts.iter().copied().zip(0..).collect();
    let mut network = Network::started(shape, Rules { classes: CLASSES as u8, ..Rules::default() })
        .map_err(|error| NetError::Manager(error.to_string()))?;
    network.settle(Duration::from_secs(10)).map_err(|error| NetError::Manager(error.to_string()))?;
    let route = |from: usize, to: usize| -> Box<[Hop]> {
        let Some(table) = network.manager(from).map(|manager| manager.table()) else { return Box::default() };
        let lid = |host: usize| table.host(hosts[host]).map_or(Lid(0), |entry| entry.lid);
        let Some(entry) = table.host(hosts[to]) else { return Box::default() };
        let (mut before, mut here, mut class) = (None, from, 0);
        let hop = |port: u8| {
            let there = form.peer(here, usize::from(port)).map_or(here, |peer| peer.0);
            class += before.map_or(0, |before| class_step(lid(before), lid(here), lid(there)));
            (before, here) = (Some(here), there);
            Hop { port, class }
        };
        entry.path.iter().map(hop).collect()
    };
    Ok((0..numbers.len()).map(|from| (0..numbers.len()).map(|to| route(from, to)).collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ntbring_manager::deadlock::{Channel, Waits};

    const FORMS: [&str; 9] =
        ["ring:2", "ring:5", "ring:100", "line:7", "line:80", "torus:4x4", "torus:3x2", "torus:9x8", "torus:12x7"];

    #[test]
    fn cables_have_two_ends() {
        for form in FORMS.map(|name| name.parse::<Form>().unwrap()) {
            let ends = (0..form.hosts()).flat_map(|host| (0..PORTS).map(move |port| (host, port)));
            for (host, port) in ends {
                if let Some((peer, other)) = form.peer(host, port) {
                    assert_eq!(form.peer(peer, other), Some((host, port)), "{form}");
                }
            }
        }
    }

    /// Checks that every route arrives over existing cables, and that the dependencies between lanes have no cycle.
    #[test]
    fn every_route_arrives_and_none_can_deadlock() {
        for form in FORMS.map(|name| name.parse::<Form>().unwrap()) {
            let net = Net::new(form, false).unwrap();
            let mut waits = Waits::new();
            for (src, dst) in (0..form.hosts()).flat_map(|src| (0..form.hosts()).map(move |dst| (src, dst))) {
                let (side, mut at, mut channels) = (net.side(src, dst), src, Vec::new());
                while at != dst {
                    let Hop { port, class } = net.next(src, dst, side, at, channels.len());
                    channels.push(Channel { host: Hwid(at as u64), port, class });
                    at = form.peer(at, usize::from(port)).expect("a cable").0;
                    assert!(channels.len() < form.hosts() && usize::from(class) < CLASSES);
                }
                waits.add(&channels);
            }
            assert_eq!(waits.cycle(), None, "{form}");
        }
    }

    #[test]
    fn names_are_parsed_or_refused() {
        assert_eq!("torus:32x32".parse(), Ok(Form::Torus(32, 32)));
        assert_eq!("torus:33x32".parse::<Form>(), Err(NetError::Hosts(1056)));
        for name in ["ring", "ring:", "ring:4x4", "torus:4", "mesh:4", "ring:-1"] {
            assert_eq!(name.parse::<Form>(), Err(NetError::Name(name.into())));
        }
    }
}
