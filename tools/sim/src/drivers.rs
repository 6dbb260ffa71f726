//! The manager drivers of all hosts, which re-route around links that are down.

use ntbring_memory::Region;
use ntbring_ntb::Side;
use ntbring_ring::manager_driver::ManagerDriver;
use ntbring_ring::routing_table::{RoutingTable, Snapshot};
use ntbring_ring::Topology;
use std::sync::Arc;
use std::time::Instant;

/// A host's manager driver, and the routes that its ranks have read from it.
pub(super) struct Watch {
    pub manager_driver: ManagerDriver,
    pub ways: RoutingTable,
    pub seen: Snapshot,
    /// State of the links on both sides at the latest check; true for a usable link.
    pub open: [bool; 2],
}

/// The manager drivers of all hosts.
pub(super) struct Control {
    pub watches: Vec<Watch>,
}

impl Control {
    pub fn new(hosts: usize) -> Control {
        let topology = Arc::new(Topology::simulated(hosts));
        let start = Instant::now();
        let watch = |host: usize| {
            let memory = Region::anonymous(RoutingTable::BYTES);
            let ways = RoutingTable::new(memory.clone());
            let seen = ways.read();
            Watch {
                manager_driver: ManagerDriver::new(topology.clone(), host, RoutingTable::new(memory), start),
                ways,
                seen,
                open: [true; 2],
            }
        };
        Control { watches: (0..hosts).map(watch).collect() }
    }

    /// Returns true if a host's manager driver has detected that the link at a port is down.
    pub fn is_closed(&self, host: usize, port: usize) -> bool {
        !self.watches[host].open[port]
    }

    pub fn reroutes(&self) -> u64 {
        self.watches.iter().map(|watch| watch.manager_driver.reroutes()).sum()
    }

    /// Returns the side by which a host reaches another; None if it is unreachable.
    pub fn side(&self, host: usize, to: usize, before: Option<Side>) -> Option<Side> {
        let seen = self.watches[host].seen;
        if seen.is_published() {
            seen.side(to)
        } else {
            before
        }
    }
}
