//! Statistics of a network whose managers have agreed, as printed by `ntbring topo`. All of them are computed from
//! the routing tables that the hosts have.

use super::deadlock::{Channel, Waits};
use super::ids::class_step;
use super::network::Network;
use super::record::Stamp;
use super::{Hwid, Lid, Path, PORTS};
use serde::Serialize;
use std::collections::BTreeMap;

/// A network whose managers have agreed.
#[derive(Clone, Debug, Serialize)]
pub struct Survey {
    /// Name of the network.
    pub name: String,
    /// The hosts.
    pub hosts: Vec<HostView>,
    /// The cables.
    pub links: Vec<LinkView>,
    /// The route between every two hosts that can reach each other.
    pub routes: Vec<RouteView>,
    /// Number of pairs of hosts with more than one shortest path.
    pub ties: usize,
    /// Number of routes that are longer than the shortest path because there are too few classes.
    pub detours: usize,
    /// Smallest and largest number of routes over one direction of a link.
    pub load: (usize, usize),
    /// Number of lanes between forwarders that routes use.
    pub channels: usize,
    /// Lanes that can wait for each other in a cycle (a potential deadlock), if there are any.
    pub cycle: Option<Vec<Channel>>,
    /// Time at which the last host got its last table, in microseconds of virtual time.
    pub agreed_us: f64,
    /// Number of packets sent until then, counted once per hop.
    pub packets: u64,
    /// Number of bytes in these packets.
    pub bytes: u64,
}

/// A host.
#[derive(Clone, Debug, Serialize)]
pub struct HostView {
    /// Index of the host in the description.
    pub host: usize,
    /// Hardware id of the host.
    pub hwid: Hwid,
    /// Local id of the host.
    pub lid: Lid,
    /// The host that it considers the master.
    pub master: Hwid,
    /// Version of its routing table.
    pub table: Stamp,
    /// Number of lane classes that it may use.
    pub classes: u8,
    /// Host and port at the other end of the cable at each port; None if there is no cable.
    pub ports: Vec<Option<(usize, u8)>>,
}

/// A cable.
#[derive(Clone, Debug, Serialize)]
pub struct LinkView {
    /// Host and port at both ends.
    pub ends: [(usize, u8); 2],
    /// True if the cable can be used.
    pub up: bool,
    /// Cost of a hop.
    pub weight: u32,
    /// Name of the link model.
    pub model: Option<String>,
    /// Number of routes over the cable from the first end to the second, and in the opposite direction.
    pub routes: [usize; 2],
}

/// A route.
#[derive(Clone, Debug, Serialize)]
pub struct RouteView {
    /// Index of the source host.
    pub from: usize,
    /// Index of the destination host.
    pub to: usize,
    /// Ports by which the route leaves each host in turn.
    pub ports: Path,
    /// Sum of the weights of its hops.
    pub cost: u64,
    /// Class of the last hop.
    pub class: u8,
    /// Number of shortest paths between the two hosts.
    pub ways: u64,
}

impl Survey {
    /// Computes the statistics from the tables of all hosts that are on.
    pub fn of(network: &Network) -> Survey {
        let shape = network.shape();
        let plugs: BTreeMap<(usize, u8), (usize, usize)> = (0..shape.cables.len())
            .flat_map(|cable| [0, 1].map(|end| (shape.cables[cable].ends[end], (cable, end))))
            .collect();
        let mut links: Vec<LinkView> = shape
            .cables
            .iter()
            .map(|c| LinkView { ends: c.ends, up: c.up, weight: c.weight, model: c.model.clone(), routes: [0; 2] })
            .collect();
        let (mut hosts, mut routes, mut waits) = (Vec::new(), Vec::new(), Waits::new());
        for host in 0..shape.hosts.len() {
            let Some(manager) = network.manager(host) else { continue };
            let (table, (far, ways)) = (manager.table(), shortest(network, host));
            let lids: BTreeMap<Hwid, Lid> = table.hosts().iter().map(|entry| (entry.hwid, entry.lid)).collect();
            let lid = |host: usize| lids.get(&shape.hosts[host]).copied().unwrap_or(Lid(0));
            for entry in table.hosts().iter().filter(|entry| !entry.path.is_empty()) {
                let (mut at, mut before, mut class, mut cost) = (host, None, 0, 0);
                let mut channels = Vec::new();
                for port in entry.path.iter() {
                    let Some(&(cable, end)) = plugs.get(&(at, port)) else { break };
                    let next = links[cable].ends[1 - end].0;
                    class += before.map_or(0, |before| class_step(before, lid(at), lid(next)));
                    channels.push(Channel { host: shape.hosts[at], port, class });
                    links[cable].routes[end] += 1;
                    cost += u64::from(links[cable].weight);
                    (before, at) = (Some(lid(at)), next);
                }
                waits.add(&channels);
                let ways = if far[at] == Some(cost) { ways[at] } else { 0 };
                routes.push(RouteView { from: host, to: at, ports: entry.path, cost, class, ways });
            }
            let other = |port: u8| plugs.get(&(host, port)).map(|&(cable, end)| links[cable].ends[1 - end]);
            hosts.push(HostView {
                host,
                hwid: manager.hwid(),
                lid: table.lid(),
                master: manager.master(),
                table: table.stamp(),
                classes: table.classes(),
                ports: (0..PORTS as u8).map(other).collect(),
            });
        }
        let load = || links.iter().filter(|link| link.up).flat_map(|link| link.routes);
        let load = (load().min().unwrap_or(0), load().max().unwrap_or(0));
        let (packets, bytes) = network.traffic();
        Survey {
            name: shape.name.clone(),
            ties: routes.iter().filter(|route| route.ways > 1).count(),
            detours: routes.iter().filter(|route| route.ways == 0).count(),
            load,
            channels: waits.channels(),
            cycle: waits.cycle(),
            agreed_us: network.last_change().as_nanos() as f64 / 1e3,
            packets,
            bytes,
            hosts,
            links,
            routes,
        }
    }
}

/// Returns the distance from a host to every other one over links that are up, and the number of shortest paths.
/// (Uses another algorithm than the manager, as a check.)
fn shortest(network: &Network, from: usize) -> (Vec<Option<u64>>, Vec<u64>) {
    let shape = network.shape();
    let (mut far, mut ways) = (vec![None; shape.hosts.len()], vec![0u64; shape.hosts.len()]);
    let mut open: Vec<(u64, usize)> = vec![(0, from)];
    (far[from], ways[from]) = (Some(0), 1);
    let mut done = vec![false; shape.hosts.len()];
    while let Some(next) = (0..open.len()).min_by_key(|i| open[*i]) {
        let (distance, at) = open.swap_remove(next);
        if std::mem::replace(&mut done[at], true) {
            continue;
        }
        for cable in shape.cables.iter().filter(|cable| cable.up) {
            for (here, there) in [(0, 1), (1, 0)] {
                let (to, there) = (cable.ends[here].0, cable.ends[there].0);
                if to != at || there == at {
                    continue;
                }
                let new = distance + u64::from(cable.weight);
                match far[there] {
                    Some(old) if old < new => {}
                    Some(old) if old == new => ways[there] += ways[at],
                    _ => {
                        (far[there], ways[there]) = (Some(new), ways[at]);
                        open.push((new, there));
                    }
                }
            }
        }
    }
    (far, ways)
}
