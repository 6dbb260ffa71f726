//! The lanes to a process from ranks whose hosts are not neighbours: an area behind its mailbox ([`DirectLayout`]).

use crate::layout::DirectLayout;
use ntbring_host::{HostError, Mailbox};
use ntbring_memory::Region;

/// The lanes to this process.
pub(crate) struct DirectLanes {
    layout: DirectLayout,
    mailbox: Mailbox,
}

impl DirectLanes {
    /// Returns the lanes behind this process's mailbox. None if all hosts are neighbours.
    pub fn new(layout: DirectLayout, mailbox: Mailbox) -> Option<DirectLanes> {
        (layout.total() > 0).then_some(DirectLanes { layout, mailbox })
    }

    /// Returns this process's mailbox.
    pub fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// Returns true if lanes behind another process's mailbox are where this process's settings have them.
    pub fn fit(&self, mailbox: &Mailbox) -> bool {
        mailbox.size() == self.mailbox.size()
    }

    /// Allocates the lane from a rank behind a mailbox, and the heads.
    pub fn back(&self, mailbox: &Mailbox, from: u32) -> Result<(), HostError> {
        let (layout, total) = (&self.layout, self.layout.total());
        mailbox.back_area(total, 0, layout.heads() as u64)?;
        mailbox.back_area(total, layout.lane(from) as u64, layout.lane_pages() as u64)
    }

    /// Maps the lane from a rank behind a mailbox, which is allocated. Returns the lane and its head.
    pub fn lane(&self, mailbox: &Mailbox, from: u32) -> Result<(Region, Region), HostError> {
        let DirectLanes { layout, .. } = self;
        let heads = mailbox.map_area(layout.total(), 0, layout.heads() as u64)?;
        let lane = mailbox.map_area(layout.total(), layout.lane(from) as u64, layout.lane_pages() as u64)?;
        lane.populate();
        Ok((lane.part(0, layout.lane_bytes()), heads.part(layout.head(from), 8)))
    }
}
