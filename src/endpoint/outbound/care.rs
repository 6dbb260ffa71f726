//! Retransmission of entries that may have been damaged or lost on their way (`queue::checked`).

use super::flow::Flow;
use super::{Outbound, Outbox};
use crate::EndpointError;
use ntbring_ntb::Side;
use std::time::Instant;

/// Reminders to a receiver about entries that it has not taken, before their sender may leave; a thread (`linger`)
/// continues after that.
const REMINDERS: u32 = 4;

impl Outbound {
    /// True if [`Outbound::look_after`] must be called regularly. A carrier has its own retransmission.
    pub fn is_unsettled(&self) -> bool {
        self.checked && self.outboxes.iter().any(|outbox| !outbox.is_settled())
    }

    /// Retransmits, or reminds receivers of, entries that they have not taken yet.
    pub fn look_after(&mut self, now: Instant) -> Result<(), EndpointError> {
        for outbox in &mut self.outboxes {
            self.doorbells += u64::from(outbox.look_after(now)?);
        }
        Ok(())
    }

    /// Sends entries in the lane to a rank of another host at once, if that lane is a connection of the carrier.
    pub fn carry(&self, dest: u32) {
        let elsewhere = |flow: &Flow| flow.distance > 0;
        if let Some(caretaker) =
            self.caretaker.as_ref().filter(|_| self.flows.get(dest as usize).is_some_and(elsewhere))
        {
            caretaker.carrier().send(dest, Instant::now());
        }
    }

    /// True if receivers have taken every entry, or do not answer although they were reminded.
    pub fn has_reminded(&self) -> bool {
        self.outboxes.iter().all(|outbox| outbox.is_settled() || outbox.lane.reminders() >= REMINDERS)
    }

    /// Moves out the lanes with untaken entries for another thread to retransmit. Nothing can be sent afterwards.
    pub fn give_away(&mut self) -> Vec<Outbox> {
        std::mem::take(&mut self.outboxes)
    }

    /// Takes the lanes back.
    pub fn take_back(&mut self, outboxes: Vec<Outbox>) {
        self.outboxes = outboxes;
    }

    /// Returns three counts: entries that links had lost or damaged on their way to the neighbours; on their way to
    /// this rank, as far as a carrier knows; and entries retransmitted end to end.
    pub fn mended(&self) -> (u64, u64, u64) {
        match &self.caretaker {
            Some(caretaker) => caretaker.carrier().mended(),
            None => (self.outboxes.iter().map(|outbox| outbox.lane.resent()).sum(), 0, 0),
        }
    }

    /// Returns for one link: bytes of lane space sent by it, entries retransmitted over it, and entries that arrived
    /// damaged, as far as a carrier knows.
    pub fn crossed(&self, side: Side) -> [u64; 3] {
        match &self.caretaker {
            Some(caretaker) => caretaker.carrier().crossed(side),
            None => {
                let by = self.outboxes.iter().filter(|outbox| outbox.bell.side() == Some(side));
                by.fold([0; 3], |sum, by| [sum[0] + by.lane.produced(), sum[1] + by.lane.resent(), 0])
            }
        }
    }

    /// Returns the number of doorbells rung, and of heads returned by a carrier.
    pub fn writes(&self) -> (u64, u64) {
        let (doorbells, heads) = self.caretaker.as_ref().map_or((0, 0), |caretaker| caretaker.carrier().writes());
        (self.doorbells + doorbells, heads)
    }
}
