//! A process's access to the ports and links of its host.

use crate::link::Link;
use crate::ports::RingPorts;
use ntbring_ntb::fabric::{Backend, Exposed, Exposure, Fabric};
use ntbring_ntb::fault::Injector;
use ntbring_ntb::trace::Record;
use ntbring_ntb::{LinkState, NtbError, Side, Vector};
use std::sync::Arc;

/// A process's access to the ports and links of its host.
pub(crate) struct Adapters {
    pub backend: Arc<dyn Backend>,
    pub fabric: Box<dyn Fabric>,
    pub ports: RingPorts,
    /// Number of doorbells of the host that are used; those of the protocol share them.
    pub doorbells: usize,
    /// Left and right; None in a ring of one host.
    pub links: Option<[Link; 2]>,
    /// Injector of faults; None without faults.
    pub injector: Option<Arc<Injector>>,
    /// Record of accesses; None without `NTBRING_TRACE`.
    pub record: Option<Record>,
}

impl Adapters {
    /// Returns a vector of this process's host.
    pub fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        match &self.links {
            // The vector is taken from the decorated port.
            Some([left, _]) => left.port.vector(doorbell),
            None => self.fabric.vector(doorbell % self.doorbells),
        }
    }

    /// Rings a doorbell of this process's own host.
    pub fn ring(&self, doorbell: usize) {
        self.fabric.ring(doorbell % self.doorbells);
    }

    /// Sets the link state that the port on a side reports from now on.
    pub fn set_link(&self, side: Side, state: LinkState) {
        self.fabric.set_link(self.ports.on(side), state);
    }

    /// Exposes memory of this process to the neighbour on a side, if the device needs that and has room.
    pub fn expose(&self, side: Side, memory: &Exposed<'_>) -> Result<Option<Box<dyn Exposure>>, NtbError> {
        self.fabric.expose(self.ports.on(side), memory)
    }

    /// Writes the buffered part of the record of accesses.
    pub fn flush_record(&self) {
        if let Some(record) = &self.record {
            if let Err(error) = record.flush() {
                log::warn!("NTBRING_TRACE: {error}");
            }
        }
    }
}
