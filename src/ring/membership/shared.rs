//! The memory that the processes of a host share.

use crate::layout::LocalLayout;
use crate::liveness::table::Table;
use crate::rerouting::routing_table::RoutingTable;
use crate::topology::Topology;
use ntbring_host::HostMemory;
use ntbring_memory::{InWindow, OutWindow, Region};
use ntbring_ntb::notice;
use ntbring_queue::{Consumer, Producer};
use ntbring_rma::Registry;
use std::sync::Arc;

/// The memory that the processes of a host share, with its layout.
pub(crate) struct Shared {
    pub memory: HostMemory,
    pub layout: LocalLayout,
}

impl Shared {
    /// Returns the sending end of the lane between two ranks of the host, by their numbers there.
    pub fn producer(&self, from: usize, to: usize) -> Producer {
        let (layout, region) = (&self.layout, self.memory.bytes());
        let lane = OutWindow::new(region.part(layout.lane_offset(from, to), layout.lane_bytes()));
        lane.populate();
        Producer::new(lane, InWindow::new(region.part(layout.credit_offset(from, to), 8)))
    }

    /// Returns the receiving end of the lane between two ranks of the host, by their numbers there.
    pub fn consumer(&self, from: usize, to: usize) -> Consumer {
        let (layout, region) = (&self.layout, self.memory.bytes());
        let lane = InWindow::new(region.part(layout.lane_offset(from, to), layout.lane_bytes()));
        lane.populate();
        Consumer::new(lane, OutWindow::new(region.part(layout.credit_offset(from, to), 8)))
    }

    /// Returns the registry in which the `ranks` ranks of the host announce segments to its forwarder.
    pub fn registry(&self, ranks: usize) -> Registry {
        let region = self.memory.bytes().part(self.layout.registry_offset(), Registry::bytes(ranks));
        Registry::new(region, ranks)
    }

    /// Returns the routing table of the host.
    pub fn routes(&self) -> RoutingTable {
        RoutingTable::new(self.memory.notes())
    }

    /// Returns the table in which the host's monitor publishes its knowledge.
    pub fn table(&self, topology: &Arc<Topology>) -> Table {
        Table::new(topology, &self.memory.bytes(), self.layout.liveness_offset())
    }

    /// Returns the state of the requests for notifications between the host and its neighbours.
    pub fn notices(&self) -> Region {
        self.memory.bytes().part(self.layout.notices_offset(), notice::STATE)
    }
}
