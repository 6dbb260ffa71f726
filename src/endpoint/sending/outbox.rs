//! An outgoing lane.

use crate::bell::Bell;
use crate::error::EndpointError;
use crate::wire::PREFIX_MAX;
use ntbring_queue::Producer;
use ntbring_zerocopy::ChunkSize;
use std::time::Instant;

/// Index of the outbox of a peer to which there is no lane.
pub const NOWHERE: usize = usize::MAX;

/// Index of the outbox of a rank that is lost: packets for it are dropped.
pub const LOST: usize = usize::MAX - 1;

/// An outgoing lane with the doorbell of its receiver.
pub struct Outbox {
    pub(super) lane: Producer,
    pub(super) bell: Bell,
    /// Chunk sizes of payloads in this lane.
    pub(super) cut: ChunkSize,
    /// True if the link has gone down: the entries in the lane will never be taken.
    pub(super) is_cut_off: bool,
}

impl Outbox {
    /// Creates an outbox whose chunks are at most as large as the lane's entries.
    pub fn new(lane: Producer, bell: Bell, cut: ChunkSize) -> Outbox {
        let cut = cut.within(lane.entry_max() - PREFIX_MAX);
        Outbox { lane, bell, cut, is_cut_off: false }
    }

    /// True if no entry needs to be retransmitted.
    pub(super) fn is_settled(&self) -> bool {
        self.is_cut_off || self.lane.is_settled()
    }

    /// Retransmits damaged entries, or reminds the receiver, if that is due. Returns true if the doorbell was rung.
    pub fn look_after(&mut self, now: Instant) -> Result<bool, EndpointError> {
        let Outbox { lane, bell, is_cut_off: false, .. } = self else { return Ok(false) };
        let woken = lane.look_after(now).map_err(|error| EndpointError::GaveUp { to: bell.describe(), error })?;
        if woken {
            bell.ring();
        }
        Ok(woken)
    }
}
