//! Work that goes on beside the application's calls: asynchronous progress of large payloads (`ffi::progress_thread`),
//! retransmission, and transit traffic.

use super::poll::INTERNAL_MAX;
use super::Endpoint;
use crate::arrival::{Arrival, Event, Polled, Target};
use crate::background;
use crate::error::EndpointError;
use crate::sending::TURN_BYTES;
use crate::wire::Packet;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::thread::JoinHandle;
use std::time::Instant;

impl Endpoint {
    /// Starts a thread that calls [`Endpoint::carry_on`] while this rank computes, if the settings ask for it.
    /// Without the thread large payloads make no progress during that time.
    pub fn start_progress_thread(&self, run: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
        background::start_progress_thread(self.settings.endpoint.overlap, &self.members, run)
    }

    /// True if there are payloads for which [`Endpoint::carry_on`] may have work now or later.
    pub fn has_bulk(&self) -> bool {
        let able = !self.out.lanes().is_lingering() && self.background.async_progress.is_able();
        able && (self.offers.is_open() || self.inbound.is_placing() || self.out.is_sending())
    }

    /// Does a limited amount of that work. Returns true if there was any; an error is kept for the rank's next poll.
    pub fn carry_on(&mut self) -> bool {
        self.out.packs = false;
        let done = catch_unwind(AssertUnwindSafe(|| self.carry_some()));
        self.out.packs = true;
        let any = self.background.async_progress.record(done);
        self.waiting.polls.odd |= self.background.async_progress.is_waiting();
        any
    }

    fn carry_some(&mut self) -> Result<bool, EndpointError> {
        if self.out.lanes().is_checked() {
            self.look_after()?;
        }
        let mut any = self.out.advance()?;
        if self.offers.is_copying() {
            self.offers.copy_some();
            self.carry_out()?;
            any = true;
        }
        let mut taken = 0;
        for _ in 0..INTERNAL_MAX {
            if taken >= TURN_BYTES {
                break;
            }
            let Some(polled) = self.inbound.poll_free(|fetch| self.offers.has_room(fetch))? else { break };
            any = true;
            match polled {
                Polled::Piece(piece) => {
                    taken += piece.len;
                    self.settle_piece(&piece)?;
                }
                Polled::Arrival(arrival) => {
                    taken += arrival.piece();
                    if self.is_for_rank(&arrival) {
                        self.background.async_progress.keep(arrival);
                    } else if let Some(event) = self.settle(arrival)? {
                        self.events.push_front(event);
                    }
                }
            }
        }
        Ok(any)
    }

    /// True if only the rank can handle this arrival.
    fn is_for_rank(&self, arrival: &Arrival) -> bool {
        match arrival.packet {
            Packet::Chunk { .. } => match arrival.target {
                Target::Caller => true,
                Target::Fetch(fetch) => !self.offers.has_room(fetch),
                Target::Room(_) => false,
            },
            Packet::Cts { .. }
            | Packet::Data { .. }
            | Packet::Fin { .. }
            | Packet::Taken { .. }
            | Packet::Credit { .. }
            | Packet::Direct => false,
            _ => true,
        }
    }

    /// Returns the next event that was kept for the rank: an arrival for the caller, then an error. It comes before new
    /// arrivals.
    pub(super) fn take_kept(&mut self) -> Result<Option<Event>, EndpointError> {
        while let Some(arrival) = self.background.async_progress.next() {
            let event = match arrival.packet {
                Packet::Message { .. } => Some(Event::Arrival(arrival)),
                _ => self.settle(arrival)?,
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        self.waiting.polls.odd = self.out.lanes().is_checked();
        self.background.async_progress.take_fault().map(|()| None)
    }

    /// Retransmits entries that may have been damaged on their way.
    pub(super) fn look_after(&mut self) -> Result<(), EndpointError> {
        let idle = &self.waiting.idle;
        if let Some(retransmit_thread) = &self.out.retransmit_thread {
            let mut reliable = retransmit_thread.reliable();
            if reliable.step(Instant::now())? {
                idle.busy();
            }
            idle.hurry(reliable.is_waiting());
            return Ok(());
        }
        let unsettled = self.out.lanes().is_unsettled();
        idle.hurry(unsettled);
        match unsettled {
            true => self.out.lanes_mut().look_after(Instant::now()),
            false => Ok(()),
        }
    }

    /// Forwards transit traffic if there was any lately, for a rank that waits for something else than an event. Returns
    /// true if there was any now.
    #[inline]
    pub fn relay(&mut self) -> bool {
        self.waiting.polls.is_relaying() && self.forward_some(false)
    }

    /// Forwards transit traffic, if this rank can. Returns true if there was any. `yields`: the rank yields between polls.
    pub(super) fn forward_some(&mut self, yields: bool) -> bool {
        let any = self.background.forwarder_threads.as_ref().is_some_and(|t| t.assist() > 0);
        if any {
            self.waiting.idle.busy();
        }
        self.waiting.polls.has_looked_for_transit(any, yields);
        any
    }
}
