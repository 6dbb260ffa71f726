//! Writing memory of processes on neighbouring hosts through the links.

use super::member::Membership;
use crate::link::Link;
use ntbring_host::SegmentAddress;
use ntbring_memory::{ForeignBytes, OutWindow};
use ntbring_ntb::{NtbError, Port};
use std::sync::Arc;

/// A segment of a process on a neighbouring host, for writing. The writes cross the link that also carries this
/// host's packets to that host, in order with them.
pub struct Writer {
    window: OutWindow,
    port: Arc<dyn Port>,
    /// Number of outages of the link before this process joined.
    outages_before: u64,
}

impl Writer {
    /// Returns the number of bytes at the start of the segment that can be written.
    pub fn reach(&self) -> u64 {
        self.window.len() as u64
    }

    /// Returns true if the `len` bytes at `offset` can be written.
    #[inline]
    pub fn has(&self, offset: u64, len: u64) -> bool {
        offset <= self.reach() && len <= self.reach() - offset
    }

    /// Writes `bytes` at `offset`, before everything that this process writes to that host afterwards. Aligned elements
    /// are not torn ([`OutWindow::write_elements`]). Panics if the bytes reach beyond the end.
    #[inline]
    pub fn write(&self, offset: u64, bytes: ForeignBytes) {
        self.window.write_elements(offset as usize, bytes);
        // Also without a later write: a write-combining buffer may keep the bytes for ever.
        self.window.fence();
    }

    /// Returns true if the link has not gone down since this process joined: nothing that was written is lost.
    pub fn is_intact(&self) -> bool {
        self.port.outages() == self.outages_before
    }
}

impl Membership {
    /// Returns true if this process may write segments of a rank that it cannot map: on a neighbouring host whose memory
    /// the link's port reaches.
    pub fn is_writable(&self, rank: u32) -> bool {
        !self.is_mappable(rank) && self.link_to(rank).is_some_and(|link| link.port.caps().segments)
    }

    /// Opens a segment of a rank for writing; None if that is not possible.
    pub fn writer(&self, rank: u32, segment: &SegmentAddress) -> Result<Option<Writer>, NtbError> {
        let Some(link) = self.link_to(rank).filter(|_| self.is_writable(rank)) else { return Ok(None) };
        let (port, outages_before) = (link.port(), link.outages_before);
        let window = port.segment(segment)?;
        Ok(window.map(|window| Writer { window, port, outages_before }))
    }

    /// Returns the link that packets for a rank on a neighbouring host take, if memory there may be written.
    fn link_to(&self, rank: u32) -> Option<&Link> {
        let (topology, host) = (self.topology(), self.host());
        let there = ((rank as usize) < topology.size()).then(|| topology.host_of(rank))?;
        if !self.policy().stores_directly() || topology.distance(host, there) != 1 {
            return None;
        }
        let side = topology.direction(host, there);
        self.links()?.into_iter().find(|link| link.side() == side)
    }
}
