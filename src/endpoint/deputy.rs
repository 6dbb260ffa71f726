//! Asynchronous progress: work on large payloads by another thread (`ffi::deputy`) while their rank computes.
//!
//! The thread copies payloads whose destination is known, feeds them into lanes and takes them out, and sends and
//! handles the packets about them. Every other arrival is kept, unreleased, for the rank, and no further entry is
//! taken from its lane before the rank has handled it. No payload is packed, because MPICH packs, and only the rank
//! may call MPICH.

use super::outbound::TURN_BYTES;
use super::poll::INTERNAL_MAX;
use super::wire::Packet;
use super::{Arrival, Endpoint, EndpointError, Event};
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

/// Results of the thread's work, and arrivals that wait for the rank.
#[derive(Default)]
pub(super) struct Interim {
    kept: VecDeque<Arrival>,
    fault: Option<EndpointError>,
    /// The payload of a panic in the thread; it does no more work after one.
    panic: Option<Box<dyn Any + Send>>,
    broken: bool,
    /// Number of calls that made progress.
    pub steps: u64,
}

impl Endpoint {
    /// True if there are payloads for which [`Endpoint::carry_on`] may have work now or later.
    pub fn has_bulk(&self) -> bool {
        let able = self.lingering.is_none() && !self.interim.broken && self.interim.fault.is_none();
        able && (self.offers.is_open() || self.out.is_sending())
    }

    /// Does a little of that work. Returns true if there was any; an error is kept for the rank's next poll.
    pub fn carry_on(&mut self) -> bool {
        self.out.packs = false;
        let done = catch_unwind(AssertUnwindSafe(|| self.carry_some()));
        self.out.packs = true;
        let any = match done {
            Ok(Ok(any)) => any,
            Ok(Err(error)) => {
                self.interim.fault = Some(error);
                self.odd = true;
                false
            }
            Err(panic) => {
                (self.interim.panic, self.interim.broken, self.odd) = (Some(panic), true, true);
                false
            }
        };
        self.interim.steps += u64::from(any);
        any
    }

    fn carry_some(&mut self) -> Result<bool, EndpointError> {
        if self.out.checked {
            self.look_after()?;
        }
        let mut any = self.out.advance()?;
        if self.offers.is_copying() {
            self.copy_some()?;
            any = true;
        }
        let mut taken = 0;
        for _ in 0..INTERNAL_MAX {
            if taken >= TURN_BYTES {
                break;
            }
            let Some(arrival) = self.inbound.poll_free()? else { break };
            any = true;
            taken += arrival.piece();
            if self.is_for_rank(&arrival) {
                self.interim.kept.push_back(arrival);
                self.odd = true;
            } else if let Some(event) = self.settle(arrival)? {
                self.offers.events.push_front(event);
            }
        }
        Ok(any)
    }

    /// True if only the rank can handle this arrival.
    fn is_for_rank(&self, arrival: &Arrival) -> bool {
        match arrival.packet {
            Packet::Chunk { .. } => !arrival.fetch.is_some_and(|fetch| self.offers.has_room(fetch)),
            Packet::Accept { .. }
            | Packet::Feed { .. }
            | Packet::Done { .. }
            | Packet::Taken { .. }
            | Packet::Credit { .. } => false,
            _ => true,
        }
    }

    /// Returns what was kept for the rank: the next arrival that is for the caller, then an error. It comes before
    /// new arrivals.
    pub(super) fn take_kept(&mut self) -> Result<Option<Event>, EndpointError> {
        while let Some(arrival) = self.interim.kept.pop_front() {
            let event = match arrival.packet {
                Packet::Message { .. } => Some(Event::Arrival(arrival)),
                _ => self.settle(arrival)?,
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        self.odd = self.out.checked;
        if let Some(panic) = self.interim.panic.take() {
            // The panic continues in the rank, which reports it.
            resume_unwind(panic);
        }
        match self.interim.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(None),
        }
    }
}
