//! What goes on with large payloads while their rank computes, in the hands of somebody else (`ffi::deputy`).
//!
//! Payloads that a place was found for are copied, fed into lanes and taken out of them, and what both sides say to each other
//! about them is sent and settled. Everything else that arrives is kept for the rank, unreleased, and nothing more is taken
//! from its lane before the rank has seen to it. No payload is packed: MPICH does that, and is the rank's alone.

use super::outbound::TURN_BYTES;
use super::poll::INTERNAL_MAX;
use super::wire::Packet;
use super::{Arrival, Endpoint, EndpointError, Event};
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

/// What was done in the meantime, and what waits for the rank.
#[derive(Default)]
pub(super) struct Interim {
    kept: VecDeque<Arrival>,
    fault: Option<EndpointError>,
    /// What it panicked with: nothing goes on by itself after that.
    panic: Option<Box<dyn Any + Send>>,
    broken: bool,
    /// Times that something was done.
    pub steps: u64,
}

impl Endpoint {
    /// Whether payloads are under way that [`Endpoint::carry_on`] may have something to do for, sooner or later.
    pub fn has_bulk(&self) -> bool {
        let able = self.lingering.is_none() && !self.interim.broken && self.interim.fault.is_none();
        able && (self.offers.is_open() || self.out.is_sending())
    }

    /// Goes on with them, a little. Whether there was anything to do; an error is for the rank's next poll.
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

    /// Whether only the rank can see to an arrival.
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

    /// What was left for the rank, first of all: an error, or the next arrival that is for the caller.
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
            // It is the rank's to report.
            resume_unwind(panic);
        }
        match self.interim.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(None),
        }
    }
}
