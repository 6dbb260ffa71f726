//! Memory of processes of a job, which processes of the neighbours write directly where a cable leads to them.

use crate::adapter::{Adapter, ExposedMemory, SliceUse};
use crate::address::slice_key;
use crate::job::Allotment;
use crate::slice::Grant;
use ntbring_memory::OutWindow;
use ntbring_ntb::{NtbError, PortIndex};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Longest time until the neighbour's agent has made known what it has exposed.
const NEWS: Duration = Duration::from_millis(200);

impl Allotment {
    /// Lets the neighbour at a port write memory of a process of the job, whose segment has this token. The arguments are
    /// those of [`Adapter::expose`]. None if there is no room, or if agents forward the neighbour's writes.
    pub fn expose_memory(
        &self,
        port: PortIndex,
        token: u64,
        (file, offset): (OwnedFd, u64),
        size: u64,
        backed: u64,
    ) -> Option<ExposedMemory> {
        let adapter = self.cable(port)?;
        adapter.expose((slice_key::of(token, port), self.user()), (file, offset), size, backed)
    }

    /// Lets a process write memory of a process of the neighbour at a port, whose port is `opposite`. None if the
    /// neighbour exposes no memory with this token.
    pub fn segment(&self, port: PortIndex, opposite: PortIndex, token: u64) -> Option<SliceUse> {
        let adapter: &Arc<Adapter> = self.cable(port)?;
        let start = Instant::now();
        loop {
            let found = adapter.use_slice(slice_key::of(token, opposite), self.user());
            if found.is_some() || start.elapsed() > NEWS {
                return found;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Access of this process to the neighbour at the other end of a cable.
pub struct CableGrant {
    slice: SliceUse,
    /// The job, which must end although threads may still hold its ports.
    allotment: Weak<Allotment>,
    port: PortIndex,
    opposite: PortIndex,
    /// The segments that were opened.
    segments: Mutex<Vec<SliceUse>>,
}

impl CableGrant {
    /// Returns the access through a slice, which a port of a job has found at the port `opposite`.
    pub fn new(slice: SliceUse, allotment: &Arc<Allotment>, port: PortIndex, opposite: PortIndex) -> CableGrant {
        CableGrant { slice, allotment: Arc::downgrade(allotment), port, opposite, segments: Mutex::default() }
    }
}

impl Grant for CableGrant {
    fn map(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError> {
        self.slice.map(offset, len)
    }

    fn ring(&self) {
        self.slice.ring();
    }

    fn reaches_segments(&self) -> bool {
        true
    }

    fn segment(&self, token: u64) -> Result<Option<OutWindow>, NtbError> {
        let job = self.allotment.upgrade();
        let Some(found) = job.and_then(|job| job.segment(self.port, self.opposite, token)) else { return Ok(None) };
        let window = found.map(0, found.range.len)?;
        self.segments.lock().unwrap_or_else(PoisonError::into_inner).push(found);
        Ok(Some(window))
    }
}
