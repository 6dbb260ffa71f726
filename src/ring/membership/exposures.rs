//! Memory of this process that neighbours write through the links.

use super::member::Membership;
use ntbring_host::Segment;
use ntbring_ntb::fabric::{Exposed, Exposure};
use ntbring_ntb::NtbError;
use std::io;
use std::ops::Deref;

/// A segment of this process, or one that it has mapped, with the exposures of its memory to neighbours.
pub struct HeldSegment {
    segment: Segment,
    exposures: Vec<Box<dyn Exposure>>,
}

impl HeldSegment {
    /// Allocates `len` bytes at `from` of a segment that this process has created and not sealed, and exposes them to those
    /// neighbours to which the bytes before them are exposed. The bytes before them must be allocated.
    pub fn grow(&self, from: u64, len: u64) -> io::Result<()> {
        self.segment.grow(from, len)?;
        self.exposures.iter().try_for_each(|exposure| {
            exposure.grow(from + len).map_err(|error| {
                log::warn!("memory cannot be put behind a window ({error}); NTBRING_DIRECT_STORES=off does without");
                io::Error::other(error)
            })
        })
    }

    /// Closes the file ([`Segment::seal`]).
    pub fn seal(&mut self) {
        self.segment.seal();
    }
}

impl From<Segment> for HeldSegment {
    /// Returns a segment that is not exposed.
    fn from(segment: Segment) -> HeldSegment {
        HeldSegment { segment, exposures: Vec::new() }
    }
}

impl Deref for HeldSegment {
    type Target = Segment;

    fn deref(&self) -> &Segment {
        &self.segment
    }
}

impl Membership {
    /// Exposes a segment of this process, of which `backed` bytes are allocated, to the neighbours whose processes may
    /// write it directly.
    pub fn expose(&self, segment: Segment, backed: u64) -> Result<HeldSegment, NtbError> {
        let (topology, host, mut exposures) = (self.topology(), self.host(), Vec::new());
        if let Some((file, offset)) = segment.file().filter(|_| self.policy().stores_directly()) {
            let memory = Exposed { token: segment.token(), file, offset, size: segment.size(), backed };
            for link in self.links().into_iter().flatten().filter(|link| link.port.caps().segments) {
                // In a ring of two hosts, each writes the other by one of the two links.
                if topology.direction(link.neighbour(), host) == link.side().opposite() {
                    exposures.extend(self.adapters.expose(link.side(), &memory)?);
                }
            }
        }
        Ok(HeldSegment { segment, exposures })
    }
}
