//! A lane that is sent into.

use crate::bell::Bell;
use crate::wire::PREFIX_MAX;
use crate::EndpointError;
use ntbring_queue::Producer;
use ntbring_zerocopy::Cut;
use std::time::Instant;

/// A lane, and whom to ring.
pub(crate) struct Outbox {
    pub(super) lane: Producer,
    pub(super) bell: Bell,
    /// How large pieces of payloads are in it.
    pub(super) cut: Cut,
    /// The link has gone down: nobody will take what is in it.
    pub(super) is_cut_off: bool,
}

impl Outbox {
    /// With pieces as large as its entries can have them.
    pub fn new(lane: Producer, bell: Bell, cut: Cut) -> Outbox {
        let cut = cut.within(lane.entry_max() - PREFIX_MAX);
        Outbox { lane, bell, cut, is_cut_off: false }
    }

    /// Whether there is nothing to look after.
    pub(super) fn is_settled(&self) -> bool {
        self.is_cut_off || self.lane.is_settled()
    }

    /// Sends again what was damaged, or reminds the receiver, if it is time.
    pub fn look_after(&mut self, now: Instant) -> Result<bool, EndpointError> {
        let Outbox { lane, bell, is_cut_off: false, .. } = self else { return Ok(false) };
        let woken = lane.look_after(now).map_err(|error| EndpointError::GaveUp { to: bell.describe(), error })?;
        if woken {
            bell.ring();
        }
        Ok(woken)
    }
}
