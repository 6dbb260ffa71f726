//! The cabling of hosts with adapters, as their agents have discovered it.

use ntbring_agent::AgentBackend;
use ntbring_pci::network::{Announcement, Cable};
use serde::Serialize;
use std::collections::HashSet;
use std::error::Error;
use std::path::Path;

/// All hosts and cables, and what is wrong with them.
#[derive(Serialize)]
pub struct Cabling {
    /// Identity of the host whose agent was asked.
    this: u64,
    hosts: Vec<Announcement>,
    remarks: Vec<String>,
}

impl Cabling {
    /// Asks the agent whose socket is at `path`. Fails if it does not run.
    pub fn ask(path: &Path) -> Result<Cabling, Box<dyn Error>> {
        let (this, hosts) = AgentBackend::connect(path)?.network()?;
        Ok(Cabling::new(this, hosts))
    }

    fn new(this: u64, hosts: Vec<Announcement>) -> Cabling {
        let mut cabling = Cabling { this, hosts, remarks: Vec::new() };
        cabling.remarks = cabling.judge();
        cabling
    }

    fn host(&self, identity: u64) -> Option<&Announcement> {
        self.hosts.iter().find(|host| host.host == identity)
    }

    fn name(&self, identity: u64) -> String {
        self.host(identity).map_or_else(|| format!("{identity:016x}"), |host| host.name.clone())
    }

    /// Returns each cable once, as its two ends.
    fn cables(&self) -> Vec<[(u64, &Cable); 2]> {
        let ends = self.hosts.iter().flat_map(|host| host.cables.iter().map(|cable| (host.host, cable)));
        let both = ends.filter_map(|(host, cable)| {
            let back = self
                .host(cable.peer)?
                .cables
                .iter()
                .find(|back| (back.peer, back.peer_port, back.port) == (host, cable.port, cable.peer_port))?;
            ((host, cable.port) < (cable.peer, back.port)).then_some([(host, cable), (cable.peer, back)])
        });
        both.collect()
    }

    /// Returns the hosts in the order in which the cables lead through them, from this host to the right (port 1); each
    /// host once.
    fn order(&self) -> Vec<u64> {
        let mut order = vec![self.this];
        let mut seen = HashSet::from([self.this]);
        let mut port = 1;
        while let Some(cable) = order.last().and_then(|&last| self.host(last)?.cables.iter().find(|c| c.port == port)) {
            if !seen.insert(cable.peer) {
                break;
            }
            order.push(cable.peer);
            port = 1 - cable.peer_port.min(1);
        }
        order.extend(self.hosts.iter().map(|host| host.host).filter(|host| !seen.contains(host)));
        order
    }

    fn judge(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        for [(a, one), (b, other)] in self.cables() {
            let ends = format!("{} port {} and {} port {}", self.name(a), one.port, self.name(b), other.port);
            if one.port == other.port {
                remarks.push(format!(
                    "crossed: the cable joins {ends}; in a ring it leads from a right port (1) to a left port (0)"
                ));
            }
            if one.window != other.window {
                remarks.push(format!(
                    "unequal windows: {ends} have {} and {} MiB; the smaller one counts",
                    one.window >> 20,
                    other.window >> 20
                ));
            }
        }
        for [(a, one), (b, other)] in self.cables() {
            let (slow, fast) = if one.rate < other.rate { ((a, one), other) } else { ((b, other), one) };
            if slow.1.rate * 3 < fast.rate {
                remarks.push(format!(
                    "slow: {} port {} writes {} MB/s, the other end {} MB/s; the log of its ntbringd says if its mapping is \
                     uncached",
                    self.name(slow.0),
                    slow.1.port,
                    slow.1.rate / 1_000_000,
                    fast.rate / 1_000_000
                ));
            }
        }
        for host in self.hosts.iter().filter(|host| host.cables.len() < 2 && self.hosts.len() > 1) {
            remarks.push(format!(
                "cut: {} has {} link(s) that are up; a ring needs two of each host, and without them messages take the \
                 long way through other hosts",
                host.name,
                host.cables.len()
            ));
        }
        if self.hosts.len() == 1 {
            remarks.push("no link of this host is up: the log of ntbringd says why".into());
        }
        remarks
    }

    /// Returns a drawing: a line for each host with its cables, in the order of the ring, then the remarks.
    pub fn show(&self) -> String {
        let mut lines = Vec::new();
        for host in self.order().into_iter().filter_map(|identity| self.host(identity)) {
            let mark = if host.host == self.this { " (this host)" } else { "" };
            lines.push(format!("{} {:016x}{mark}", host.name, host.host));
            let mut cables = host.cables.clone();
            cables.sort_by_key(|cable| cable.port);
            lines.extend(cables.iter().map(|cable| {
                let megabytes = cable.rate / 1_000_000;
                format!(
                    "  port {} --- port {} of {}, writes {megabytes} MB/s",
                    cable.port,
                    cable.peer_port,
                    self.name(cable.peer)
                )
            }));
            lines.extend(host.circuits.iter().map(|circuit| {
                let way: Vec<String> = circuit.steps.iter().map(|step| self.name(step.host)).collect();
                format!("  circuit through {}", way.join(", "))
            }));
        }
        let names: Vec<String> = self.order().into_iter().map(|host| self.name(host)).collect();
        lines.push(format!("order for a job: -hosts {}", names.join(",")));
        lines.extend(self.remarks.clone());
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns hosts 1, 2, ... with these cables, each between two ports.
    fn cabling(hosts: u64, cables: &[[(u64, u8); 2]]) -> Cabling {
        let host = |host: u64| {
            let ends = cables.iter().flat_map(|&[a, b]| [(a, b), (b, a)]).filter(|(own, _)| own.0 == host);
            let cables = ends.map(|((_, port), (peer, peer_port))| {
                let window = if port == 3 { 1 << 20 } else { 4 << 20 };
                let rate = if port == 3 { 40_000_000 } else { 5_000_000_000 };
                Cable { port, peer, peer_port, epoch: 1, window, rate }
            });
            Announcement { host, sequence: 1, name: format!("node{host}"), cables: cables.collect(), circuits: vec![] }
        };
        Cabling::new(1, (1..=hosts).map(host).collect())
    }

    #[test]
    fn a_ring_is_drawn_in_order_and_needs_no_remark() {
        let ring = cabling(3, &[[(1, 1), (3, 0)], [(3, 1), (2, 0)], [(2, 1), (1, 0)]]);
        let text = ring.show();
        assert!(text.contains("order for a job: -hosts node1,node3,node2"), "{text}");
        assert!(text.contains("port 1 --- port 0 of node3") && ring.remarks.is_empty(), "{text}");
    }

    #[test]
    fn crossed_cut_and_unequal_cables_are_named() {
        let text = cabling(3, &[[(1, 1), (2, 1)], [(2, 0), (3, 3)]]).show();
        for part in [
            "crossed: the cable joins node1 port 1 and node2 port 1",
            "cut: node1 has 1",
            "4 and 1 MiB",
            "slow: node3 port 3 writes 40 MB/s",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(cabling(1, &[]).show().contains("no link of this host is up"));
    }
}
