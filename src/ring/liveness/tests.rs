//! Rings of monitors on loopback adapters, in virtual time.

use super::table::Table;
use super::*;
use crate::layout::{LocalLayout, WindowLayout};
use crate::ports::RingPorts;
use crate::topology::Topology;
use ntbring_memory::Region;
use ntbring_ntb::fabric::{Backend, Fabric, OpenPort, PortAddress, Windows};
use ntbring_ntb::loopback::Loopback;
use ntbring_ntb::notice::{Notices, STATE};
use ntbring_ntb::{LinkState, Port, Side};
use std::sync::Arc;
use std::time::{Duration, Instant};

const WINDOW: u64 = 1 << 20;
const LIMIT: Duration = Duration::from_secs(60);

struct Ring {
    topology: Arc<Topology>,
    fabrics: Vec<Box<dyn Fabric>>,
    monitors: Vec<Monitor>,
    tables: Vec<Table>,
    now: Instant,
}

impl Ring {
    fn new(host_of: &[i32]) -> Ring {
        let hosts = *host_of.iter().max().unwrap() as usize + 1;
        let topology = Arc::new(Topology::new(hosts, host_of).unwrap());
        let windows = Windows { bytes: WINDOW, accounts: false, ports: RingPorts::default().list() };
        let fabrics: Vec<_> = (0..hosts).map(|_| Loopback.create(windows).unwrap()).collect();
        let (mut monitors, mut tables) = (Vec::new(), Vec::new());
        for host in 0..hosts {
            let plan = |host, side| WindowLayout::new(&topology, host, side, WINDOW, false).unwrap();
            let channel = |side: Side| {
                let neighbour = topology.neighbour(host, side);
                let on = |side| RingPorts::default().on(side);
                let open = |host: usize, side: Side, to: usize| {
                    let opposite = PortAddress { host: fabrics[to].address(), port: on(side.opposite()) };
                    fabrics[host].port(on(side), &opposite).unwrap()
                };
                let offset = match open(neighbour, side.opposite(), host) {
                    OpenPort::Software(port) => port.incoming_offset(),
                    OpenPort::Adapter(port) => port.incoming_offset(),
                };
                let plans = [plan(host, side), plan(neighbour, side.opposite())];
                Channel::new(&topology, side, open(host, side, neighbour), offset, WINDOW, plans).unwrap()
            };
            let local = LocalLayout::new(&topology, host, 4096);
            let table = Table::new(&topology, &Region::anonymous(local.total() as usize), local.liveness_offset());
            tables.push(table.clone());
            let pids = vec![1; topology.size()];
            let channels = Side::BOTH.map(channel);
            let tables = channels.each_ref().map(Channel::notices);
            let notices = Arc::new(Notices::new(Region::anonymous(STATE), tables));
            monitors.push(Monitor::new(&topology, host, &pids, (channels.into(), notices), table, LIMIT, None));
        }
        Ring { topology, fabrics, monitors, tables, now: Instant::now() }
    }

    /// Passes time in steps, during which the monitors of some hosts are stopped.
    fn pass(&mut self, time: Duration, stopped: &[usize]) {
        let end = self.now + time;
        while self.now < end {
            self.now += PERIOD;
            for (_, monitor) in self.monitors.iter_mut().enumerate().filter(|(host, _)| !stopped.contains(host)) {
                monitor.step(self.now);
            }
        }
    }

    /// Returns the ranks that each of these hosts knows to have ended.
    fn ended(&self, hosts: &[usize]) -> Vec<Vec<u32>> {
        hosts.iter().map(|&host| self.tables[host].ended()).collect()
    }

    /// Returns the longest silence that any of these hosts has noticed.
    fn silence(&self, hosts: &[usize]) -> Duration {
        let of = |&host: &usize| (0..self.topology.hosts()).map(move |other| self.tables[host].silence(other));
        hosts.iter().flat_map(of).max().unwrap()
    }
}

#[test]
fn an_obituary_reaches_all_hosts_both_ways_and_its_host_is_not_silent() {
    let mut ring = Ring::new(&[0, 0, 1, 2, 3, 4]);
    ring.pass(PERIOD * 6, &[]);
    assert_eq!((ring.ended(&[0, 1, 2, 3, 4]), ring.silence(&[0, 1, 2, 3, 4])), (vec![vec![]; 5], Duration::ZERO));
    // The only rank of host 3 ends, and with it the monitor; then one of two ranks of host 0, which goes on.
    ring.monitors[3].fail_orphaned(4);
    ring.pass(PERIOD, &[]);
    ring.monitors[0].fail_orphaned(1);
    ring.pass(PERIOD * 3, &[3]);
    assert_eq!(ring.ended(&[0, 1, 2, 4]), vec![vec![1, 4]; 4]);
    ring.pass(LIMIT * 2, &[3]);
    // Host 3 is not expected to send anything any more, and the others receive keep-alives along the rest of the ring.
    assert_eq!(ring.silence(&[0, 1, 2, 4]), Duration::ZERO);
}

#[test]
fn a_stopped_host_is_silent_and_is_heard_again() {
    let mut ring = Ring::new(&[0, 1, 2]);
    ring.pass(PERIOD * 3, &[]);
    ring.pass(LIMIT / 2, &[1]);
    let silence = ring.silence(&[0, 2]);
    assert!(silence >= LIMIT / 2 - PERIOD * 3 && silence <= LIMIT / 2, "{silence:?}");
    ring.pass(PERIOD * 3, &[]);
    assert_eq!(ring.silence(&[0, 1, 2]), Duration::ZERO);
    // All monitors are stopped together, and one continues before the others: it has received nothing while it was
    // stopped.
    ring.now += LIMIT * 10;
    ring.pass(PERIOD, &[1, 2]);
    assert!(ring.silence(&[0]) < WARN_AFTER);
    // A host that has been silent for too long is lost for good.
    ring.pass(LIMIT + PERIOD * 3, &[1]);
    ring.pass(PERIOD * 3, &[]);
    assert!(ring.tables[0].silence(1) >= LIMIT && ring.tables[0].silence(2) == Duration::ZERO);
}

#[test]
fn news_go_round_a_link_that_is_down() {
    let mut ring = Ring::new(&[0, 1, 2, 3]);
    ring.fabrics[0].set_link(RingPorts::default().on(Side::Right), LinkState::Down);
    ring.fabrics[1].set_link(RingPorts::default().on(Side::Left), LinkState::Down);
    ring.monitors[1].fail_orphaned(1);
    ring.pass(PERIOD * 4, &[]);
    assert_eq!(ring.ended(&[0]), [[1]]);
    ring.pass(LIMIT * 2, &[]);
    assert_eq!(ring.silence(&[0, 2, 3]), Duration::ZERO);
}
