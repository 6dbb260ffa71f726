//! Memory of processes that neighbours write directly, as a process asks its agent for it.

use crate::connection::{mapping, Agent};
use crate::message::{Reply, Request};
use ntbring_memory::OutWindow;
use ntbring_ntb::fabric::{Exposed, Exposure, FabricAddress};
use ntbring_ntb::{NtbError, PortIndex};
use ntbring_pci::memory;
use std::fs::File;
use std::sync::Arc;

/// The way to memory of processes of the neighbour at a port. The agent grants it as long as the connection lasts.
pub(crate) struct SegmentWay {
    pub agent: Arc<Agent>,
    /// The address of the job's windows on this host.
    pub address: [u8; 32],
    pub port: u8,
    /// The port of the neighbour.
    pub opposite: u8,
}

impl SegmentWay {
    /// Maps the memory of the segment with this token; None if the neighbour does not expose it.
    pub fn segment(&self, token: u64) -> Result<Option<OutWindow>, NtbError> {
        let SegmentWay { address, port, opposite, .. } = *self;
        match self.agent.ask(&Request::Segment { address, port, opposite, token })? {
            (Reply::Exposed { is_exposed: false }, _) => Ok(None),
            (Reply::Segment { offset, len, is_combining }, mut files) if files.len() == 1 => {
                let file = File::from(files.remove(0));
                let region = memory::map(&file, offset, len).map_err(|error| self.agent.cannot_map(&error))?;
                Ok(Some(OutWindow::mapped(region, mapping(is_combining))))
            }
            (other, _) => Err(self.agent.unexpected(&other)),
        }
    }
}

/// Memory of this process that the agent has exposed at a port.
struct AgentExposure {
    agent: Arc<Agent>,
    port: u8,
    token: u64,
}

/// Asks the agent to expose memory at a port of a job; None if it cannot.
pub(crate) fn expose(
    agent: &Arc<Agent>,
    (address, port): (FabricAddress, PortIndex),
    memory: &Exposed<'_>,
) -> Result<Option<Box<dyn Exposure>>, NtbError> {
    let Exposed { token, file, offset, size, backed } = *memory;
    let port = port.get();
    match agent.ask_with(&Request::Expose { address: address.0, port, token, offset, size, backed }, &[file])? {
        (Reply::Exposed { is_exposed: false }, _) => Ok(None),
        (Reply::Exposed { is_exposed: true }, _) => {
            Ok(Some(Box::new(AgentExposure { agent: agent.clone(), port, token })))
        }
        (other, _) => Err(agent.unexpected(&other)),
    }
}

impl Exposure for AgentExposure {
    fn grow(&self, backed: u64) -> Result<(), NtbError> {
        let (port, token) = (self.port, self.token);
        match self.agent.ask(&Request::Grow { port, token, backed })? {
            (Reply::Exposed { is_exposed: true }, _) => Ok(()),
            (other, _) => Err(self.agent.unexpected(&other)),
        }
    }
}

impl Drop for AgentExposure {
    fn drop(&mut self) {
        // If the agent does not answer, it has ended, and nobody can write the memory any more.
        let _ = self.agent.ask(&Request::Withdraw { port: self.port, token: self.token });
    }
}
