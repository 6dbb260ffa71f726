//! Looking after what may have been damaged on its way (`queue::checked`), or lost.

use super::flow::Flow;
use super::{Outbound, Outbox};
use crate::EndpointError;
use ntbring_ntb::Side;
use std::time::Instant;

/// How often a receiver is reminded of what it has not taken before its sender may leave: a thread goes on (`linger`).
const REMINDERS: u32 = 4;

impl Outbound {
    /// Whether [`Outbound::look_after`] has to be called now and then; a carrier looks after itself.
    pub fn is_unsettled(&self) -> bool {
        self.checked && self.outboxes.iter().any(|outbox| !outbox.is_settled())
    }

    /// Looks after all that others have not taken yet.
    pub fn look_after(&mut self, now: Instant) -> Result<(), EndpointError> {
        for outbox in &mut self.outboxes {
            self.doorbells += u64::from(outbox.look_after(now)?);
        }
        Ok(())
    }

    /// What has been put into the lane to a rank of another host leaves at once, if links do not lead there themselves.
    pub fn carry(&self, dest: u32) {
        let elsewhere = |flow: &Flow| flow.distance > 0;
        if let Some(caretaker) =
            self.caretaker.as_ref().filter(|_| self.flows.get(dest as usize).is_some_and(elsewhere))
        {
            caretaker.carrier().send(dest, Instant::now());
        }
    }

    /// Whether others have taken everything, or do not answer though they were reminded.
    pub fn has_reminded(&self) -> bool {
        self.outboxes.iter().all(|outbox| outbox.is_settled() || outbox.lane.reminders() >= REMINDERS)
    }

    /// What others have not taken, for somebody else to look after. Nothing can be sent after this.
    pub fn give_away(&mut self) -> Vec<Outbox> {
        std::mem::take(&mut self.outboxes)
    }

    /// What was given away, back.
    pub fn take_back(&mut self, outboxes: Vec<Outbox>) {
        self.outboxes = outboxes;
    }

    /// Entries that links had lost or damaged on their way to the neighbours or, as far as a carrier knows, to this rank,
    /// and entries that were sent again end to end.
    pub fn mended(&self) -> (u64, u64, u64) {
        match &self.caretaker {
            Some(caretaker) => caretaker.carrier().mended(),
            None => (self.outboxes.iter().map(|outbox| outbox.lane.resent()).sum(), 0, 0),
        }
    }

    /// Of one link: bytes of lanes sent by it, entries sent again, entries that it had damaged on their way here as far as a
    /// carrier knows.
    pub fn crossed(&self, side: Side) -> [u64; 3] {
        match &self.caretaker {
            Some(caretaker) => caretaker.carrier().crossed(side),
            None => {
                let by = self.outboxes.iter().filter(|outbox| outbox.bell.side() == Some(side));
                by.fold([0; 3], |sum, by| [sum[0] + by.lane.produced(), sum[1] + by.lane.resent(), 0])
            }
        }
    }

    /// Doorbells rung, and heads returned by a carrier.
    pub fn writes(&self) -> (u64, u64) {
        let (doorbells, heads) = self.caretaker.as_ref().map_or((0, 0), |caretaker| caretaker.carrier().writes());
        (self.doorbells + doorbells, heads)
    }
}
