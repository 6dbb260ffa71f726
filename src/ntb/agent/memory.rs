//! The memory of a process that neighbours write directly, and that of neighbours' processes that it writes.

use crate::message::{Reply, Request};
use ntbring_memory::Mapping;
use ntbring_ntb::fabric::{Exposure, FabricAddress};
use ntbring_ntb::PortIndex;
use ntbring_pci::{Allotment, ExposedMemory, SliceAddress, SliceUse};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The most memories that a process exposes, and that it opens.
const EXPOSED_MAX: usize = 16;
const OPENED_MAX: usize = 1024;

/// The exposed and opened memory of a process.
pub struct ProcessMemory {
    /// True if the agent carries out the writes of all processes: it does not do so for such memory.
    relays: bool,
    /// Exposed memory by port and token.
    exposed: HashMap<(u8, u64), ExposedMemory>,
    opened: Vec<SliceUse>,
}

impl ProcessMemory {
    /// Returns the state of a process that has just connected.
    pub fn new(relays: bool) -> ProcessMemory {
        ProcessMemory { relays, exposed: HashMap::new(), opened: Vec::new() }
    }

    /// Takes everything back.
    pub fn clear(&mut self) {
        self.opened.clear();
        self.exposed.clear();
    }

    /// Answers a request that concerns memory of the process, which has windows in some jobs. Returns the reason if it is
    /// refused.
    pub fn grant(
        &mut self,
        request: &Request,
        files: Vec<OwnedFd>,
        jobs: &HashMap<u64, Arc<Allotment>>,
    ) -> Result<Reply, String> {
        let is_exposed = match *request {
            Request::Expose { address, port, token, offset, size, backed } => {
                let address = SliceAddress::decode(&FabricAddress(address)).ok_or("an invalid address")?;
                let job = jobs.get(&address.key).ok_or("the process has no windows with this address")?;
                let index = PortIndex::new(port).ok_or("there is no such port")?;
                let [file] = <[OwnedFd; 1]>::try_from(files).map_err(|_| "one descriptor is needed")?;
                if self.exposed.contains_key(&(port, token)) {
                    return Err("the process exposes this memory already".into());
                }
                let exposed = match self.relays || self.exposed.len() >= EXPOSED_MAX {
                    true => None,
                    false => job.expose_memory(index, token, (file, offset), size, backed),
                };
                let is_exposed = exposed.is_some();
                self.exposed.extend(exposed.map(|memory| ((port, token), memory)));
                is_exposed
            }
            Request::Grow { port, token, backed } => {
                let exposed = self.exposed.get(&(port, token)).ok_or("this memory is not exposed")?;
                exposed.grow(backed).map_err(|error| error.to_string())?;
                true
            }
            Request::Withdraw { port, token } => {
                self.exposed.remove(&(port, token));
                false
            }
            _ => return Err("it concerns no memory".into()),
        };
        Ok(Reply::Exposed { is_exposed })
    }

    /// Lets the process write memory of a process of the neighbour at the first of two ports, whose port is the second.
    /// Returns the reply with the file that maps it; None if there is no such memory.
    pub fn open(
        &mut self,
        job: &Arc<Allotment>,
        (port, opposite): (PortIndex, PortIndex),
        token: u64,
    ) -> Result<Option<(Reply, OwnedFd)>, String> {
        if self.opened.len() >= OPENED_MAX {
            return Err(format!("the process has opened memory of {OPENED_MAX} others already"));
        }
        let Some(found) = (!self.relays).then(|| job.segment(port, opposite, token)).flatten() else { return Ok(None) };
        let Some((file, start)) = found.adapter.window_file() else { return Ok(None) };
        let file = file.try_clone_to_owned().map_err(|error| error.to_string())?;
        let is_combining = found.adapter.caps().mapping == Mapping::WriteCombining;
        let reply = Reply::Segment { offset: start + found.range.offset, len: found.range.len, is_combining };
        self.opened.push(found);
        Ok(Some((reply, file)))
    }
}
