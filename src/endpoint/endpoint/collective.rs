//! Collectives of groups that have one rank on each host.

use super::Endpoint;
use crate::error::EndpointError;

impl Endpoint {
    /// Returns the mailboxes that this rank offers for a new group, one bit for each; none while another offer is
    /// pending. The members of the new group combine their offers by AND, and then each calls
    /// [`Endpoint::open_group`].
    pub fn offer_boards(&mut self) -> u32 {
        self.groups.offer()
    }

    /// Opens a group on the first mailbox that all its members have offered (`all`); this rank has offered `mine`.
    /// `ranks` are the members in the order of their hosts, one on each, including this rank. Returns false if there
    /// is no common mailbox.
    pub fn open_group(&mut self, id: u32, ranks: &[u32], mine: u32, all: u32) -> Result<bool, EndpointError> {
        let loss = ranks.iter().find_map(|&rank| self.peer_losses.of(rank));
        self.groups.open(id, ranks, (mine, all), loss)
    }

    /// Closes a group in which no further allgather will begin.
    pub fn close_group(&mut self, id: u32) {
        self.groups.close(id);
    }

    /// Returns the maximum number of bytes of a block. It is less than [`crate::BLOCK_MAX`] where mailboxes would
    /// otherwise take too much of a window, and the same on all ranks.
    pub fn block_max(&self) -> usize {
        self.members.block_max()
    }

    /// Begins the next allgather of a group; the previous one must be complete. The blocks of all members must have
    /// the same size, at most [`Endpoint::block_max`] bytes. None: this rank has failed, and the allgather will fail
    /// on all members.
    pub fn begin_allgather(&mut self, id: u32, block: Option<&[u8]>) -> Result<(), EndpointError> {
        self.groups.begin_allgather(id, block)
    }

    /// Returns true once all blocks of an allgather have arrived and been passed on.
    pub fn is_allgathered(&mut self, id: u32) -> Result<bool, EndpointError> {
        self.groups.is_allgathered(id, || self.waiting.idle.busy())
    }

    /// As [`Endpoint::is_allgathered`], but looks up to `looks` times, and only spins or yields in between. While it
    /// returns false, the caller must poll before it calls again.
    pub fn await_allgather(&mut self, id: u32, looks: u32) -> Result<bool, EndpointError> {
        for _ in 0..looks {
            if self.is_allgathered(id)? {
                return Ok(true);
            }
            // Other pending work comes first.
            if self.has_work() {
                break;
            }
            if self.relay() {
                continue;
            }
            while self.waiting.idle.gives_way() && self.groups.may_look_without_yield(id) {
                // Other hosts may wait for a packet in transit, and this rank for them.
                self.relay();
                if self.is_allgathered(id)? {
                    return Ok(true);
                }
            }
            self.waiting.idle.pause();
        }
        self.is_allgathered(id)
    }

    /// Copies the blocks of a completed allgather to `to`, in the order of the hosts.
    pub fn end_allgather(&mut self, id: u32, to: &mut [u8]) -> Result<(), EndpointError> {
        self.groups.end_allgather(id, to)?;
        // Earlier messages of the other members may lie in cold lanes, and a rank that has just left a barrier may
        // probe for them only once.
        self.inbound.look_everywhere();
        Ok(())
    }
}
