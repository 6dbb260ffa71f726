//! The ring of a running job, as its hosts see it.

use crate::running::{choose, down, port, state};
use comfy_table::{presets::NOTHING, Table};
use ntbring_host::RunningHostMemory;
use ntbring_manager::shape::Shape;
use ntbring_manager::Hwid;
use ntbring_ntb::{LinkState, PortIndex, Side};
use ntbring_ring::routing_table::RoutingTable;
use ntbring_ring::Topology;
use serde::Serialize;
use std::error::Error;

/// The ring of a running job.
#[derive(Serialize)]
pub struct Ring {
    /// Process id of the job's rank 0.
    job: u32,
    /// Number of hosts in the ring; those that have not joined yet are not in `hosts`.
    size: usize,
    hosts: Vec<Host>,
    links_down: Vec<String>,
}

/// A host of the ring.
#[derive(Serialize)]
struct Host {
    host: usize,
    /// Local id on which the host's network manager has agreed with the others, if it has one.
    lid: Option<u8>,
    master: Option<usize>,
    /// State of its left port.
    left: &'static str,
    right: &'static str,
    /// Numbers of its left and of its right port.
    ports: [Option<u8>; 2],
    /// Hosts that it reaches by the left side.
    to_the_left: Vec<usize>,
    to_the_right: Vec<usize>,
    unreachable: Vec<usize>,
}

impl Ring {
    /// Reads the ring of the job whose rank 0 is process `job`, or of the only job.
    pub fn look(job: Option<u32>) -> Result<Ring, Box<dyn Error>> {
        let (job, found) = choose(job)?;
        let size = usize::from(found[0].is.hosts);
        let of: Vec<i32> = (0..size as i32).collect();
        let topology = Topology::new(size, &of)?;
        let mut hosts: Vec<Host> = Vec::new();
        let memories = RunningHostMemory::all()?;
        for one in &found {
            let host = usize::from(one.is.host);
            // Each VCI has a ring of its own, and these rings are alike.
            if hosts.last().is_some_and(|last| last.host == host) {
                continue;
            }
            let Some(memory) = memories.iter().find(|memory| memory.is == one.is) else { continue };
            let ways = RoutingTable::new(memory.notes.clone());
            let (snapshot, agreed) = (ways.read(), ways.agreed());
            let side = |to: usize| match snapshot.is_published() {
                true => snapshot.side(to),
                false => Some(topology.direction(host, to)),
            };
            let by = |wanted: Option<Side>| (0..size).filter(|&to| to != host && side(to) == wanted).collect();
            hosts.push(Host {
                host,
                lid: agreed.map(|(lid, _)| lid.0),
                master: agreed.map(|(_, master)| master),
                left: name(state(one, Side::Left)),
                right: name(state(one, Side::Right)),
                ports: Side::BOTH.map(|side| port(one, side).map(PortIndex::get)),
                to_the_left: by(Some(Side::Left)),
                to_the_right: by(Some(Side::Right)),
                unreachable: by(None),
            });
        }
        Ok(Ring { job, size, links_down: down(&found), hosts })
    }

    /// Returns the ring as a shape for drawings.
    pub fn shape(&self) -> Result<Shape, Box<dyn Error>> {
        let mut shape = Shape::parse(&format!("ring:{}", self.size))?;
        shape.name = format!("job {}", self.job);
        shape.hosts = (0..self.size as u64).map(Hwid).collect();
        for cable in &mut shape.cables {
            cable.up = !cable.ends.iter().any(|&(host, port)| {
                let found = self.hosts.iter().find(|h| h.host == host);
                found.is_some_and(|h| [h.left, h.right][usize::from(port)] == name(LinkState::Down))
            });
        }
        Ok(shape)
    }

    /// Formats the ring as text.
    pub fn show(&self) -> String {
        let mut text = format!("job {}: a ring of {} hosts", self.job, self.size);
        text += &match self.links_down.as_slice() {
            [] => ", all links are up\n".into(),
            down => format!(", links down: {}\n", down.join(" ")),
        };
        text += &self.drawing();
        let mut table = Table::new();
        table.load_preset(NOTHING);
        table.set_header([
            "host",
            "LID",
            "master",
            "left link",
            "right link",
            "to the left",
            "to the right",
            "no way to",
        ]);
        let list = |hosts: &[usize]| match hosts {
            [] => "-".to_string(),
            hosts => hosts.iter().map(usize::to_string).collect::<Vec<_>>().join(" "),
        };
        let or_dash = |number: Option<usize>| number.map_or_else(|| "-".into(), |number| number.to_string());
        for host in &self.hosts {
            let sides = [&host.to_the_left, &host.to_the_right, &host.unreachable].map(|hosts| list(hosts));
            let [left, right, none] = sides;
            let (lid, master) = (or_dash(host.lid.map(usize::from)), or_dash(host.master));
            let link = |state: &str, port: Option<u8>| {
                port.map_or_else(|| state.to_string(), |port| format!("{state} (port {port})"))
            };
            let links = [link(host.left, host.ports[0]), link(host.right, host.ports[1])];
            table.add_row([host.host.to_string(), lid, master].into_iter().chain(links).chain([left, right, none]));
        }
        text += &format!("\n{table}\n");
        if self.hosts.iter().all(|host| host.master.is_none()) {
            text +=
                "no network manager is running (it needs NTBRING_RELIABILITY=retry); packets take the shorter route\n";
        }
        text
    }

    /// Draws the ring as a line of text: `0 --- 1 -x- 2 --- 0`.
    fn drawing(&self) -> String {
        let mut line = String::from("\n    0");
        for host in 0..self.size {
            let next = (host + 1) % self.size;
            let link = if self.links_down.contains(&format!("{host}-{next}")) { "-x-" } else { "---" };
            line += &format!(" {link} {next}");
        }
        line + "\n"
    }
}

fn name(state: LinkState) -> &'static str {
    match state {
        LinkState::Up => "up",
        LinkState::Down => "down",
    }
}
