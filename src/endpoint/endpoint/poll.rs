//! The progress engine: polls for arrivals and advances all other pending work.

use super::Endpoint;
use crate::arrival::{Event, Look, Polled};
use crate::error::EndpointError;
use crate::sending::TURN_BYTES;
use crate::waiting::TESTS;
use crate::wire::Packet;
use ntbring_ring::forwarder_threads::ForwarderThreads;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Maximum number of arrivals that one poll handles without returning an event.
pub(super) const INTERNAL_MAX: usize = 8;

impl Endpoint {
    /// Returns an event, if there is one. Also sends queued packets and forwards transit traffic.
    pub fn poll(&mut self) -> Result<Option<Event>, EndpointError> {
        let look = self.look();
        self.follow(look)
    }

    /// Completes a poll that began with [`Endpoint::look`].
    #[inline]
    pub fn follow(&mut self, look: Look) -> Result<Option<Event>, EndpointError> {
        match look {
            Look::Nothing => Ok(None),
            Look::Vain { thorough } => {
                self.forward_some(self.waiting.idle.gives_way());
                self.nothing_found(thorough).map(|()| None)
            }
            Look::Plain(plain) => Ok(Some(Event::Arrival(plain.into()))),
            Look::Other => self.look_closer(),
        }
    }

    /// True if there is work to do before anything new is received.
    #[inline(always)]
    pub(super) fn has_work(&self) -> bool {
        self.out.has_work() || self.onesided.remotes.has_work() || self.offers.is_copying() || !self.events.is_empty()
    }

    /// Does the fast half of a poll, for callers that handle single-entry messages without an event. The other half is
    /// [`Endpoint::follow`].
    #[inline(always)]
    pub fn look(&mut self) -> Look {
        if self.has_work() || self.waiting.polls.odd {
            return Look::Other;
        }
        let thorough = self.waiting.polls.begin(self.waiting.idle.polls_are_rare());
        match self.inbound.look(thorough) {
            Look::Nothing => {
                self.waiting.polls.found_nothing();
                match thorough || self.waiting.polls.is_relaying() {
                    true => Look::Vain { thorough },
                    false => Look::Nothing,
                }
            }
            Look::Plain(plain) => {
                self.waiting.idle.busy();
                Look::Plain(plain)
            }
            other => other,
        }
    }

    /// Does the slow half of a poll.
    #[inline]
    fn look_closer(&mut self) -> Result<Option<Event>, EndpointError> {
        // Events come before kept arrivals: no further entries are taken from a lane behind a kept one, so an
        // operation that has ended did so before it, and a payload is complete before any later message of its sender
        // is seen.
        if let Some(event) = self.events.pop_front() {
            self.waiting.idle.busy();
            return Ok(Some(event));
        }
        if self.waiting.polls.odd {
            if self.out.lanes().is_checked() {
                self.look_after()?;
            }
            if let Some(event) = self.take_kept()? {
                self.waiting.idle.busy();
                return Ok(Some(event));
            }
        }
        if self.out.has_work() {
            if self.out.advance()? {
                self.waiting.idle.busy();
            }
            if let Some(sent) = self.out.take_sent() {
                self.waiting.idle.busy();
                return Ok(Some(match sent.offered {
                    true => {
                        self.offers.has_left(sent.cookie);
                        Event::Taken { cookie: sent.cookie }
                    }
                    false => Event::Sent { cookie: sent.cookie, handler: sent.handler },
                }));
            }
        }
        if self.onesided.remotes.has_work() && self.request_some() {
            self.waiting.idle.busy();
        }
        if self.offers.is_copying() {
            self.waiting.idle.busy();
            self.offers.copy_some();
            self.carry_out()?;
        }
        if let Some(event) = self.events.pop_front() {
            return Ok(Some(event));
        }
        let mut taken = 0;
        for _ in 0..INTERNAL_MAX {
            if taken >= TURN_BYTES {
                break;
            }
            let Some(polled) = self.inbound.poll(|fetch| self.offers.has_room(fetch))? else {
                // The rest of a poll is due only if there was nothing at all.
                if taken > 0 {
                    return Ok(None);
                }
                self.waiting.polls.found_nothing();
                // This poll has looked at all lanes; transit traffic is looked for as often as on the fast path.
                let thorough = self.waiting.polls.begin(self.waiting.idle.polls_are_rare());
                if thorough || self.waiting.polls.is_relaying() {
                    self.forward_some(self.waiting.idle.gives_way());
                }
                return self.nothing_found(true).map(|()| None);
            };
            self.waiting.idle.busy();
            let event = match polled {
                Polled::Piece(piece) => {
                    taken += piece.len;
                    self.settle_piece(&piece)?;
                    self.events.pop_front()
                }
                Polled::Arrival(arrival) => {
                    taken += arrival.piece();
                    match arrival.packet {
                        Packet::Message { .. } => Some(Event::Arrival(arrival)),
                        _ => self.settle(arrival)?,
                    }
                }
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    /// Does the rest of a poll that found no event; `thorough` if it looked at all lanes.
    fn nothing_found(&mut self, thorough: bool) -> Result<(), EndpointError> {
        if let Some(error) = self.background.forwarder_threads.as_ref().and_then(ForwarderThreads::fault) {
            return Err(error.into());
        }
        if self.dynamic.external_peers.has_news() {
            self.read_mail()?;
        }
        if self.observation.dump.fired() {
            eprint!("{}", self.describe());
        }
        if self.waiting.receive_timeout.is_some() {
            self.check_receive_timeout()?;
        }
        let due = self.waiting.polls.due();
        if due.stalled && self.credits.any_stalled() {
            self.serve_stalled()?;
        }
        if due.tested {
            self.waiting.idle.tested(TESTS);
        }
        if due.glance {
            self.waiting.idle.glance();
        }
        if !thorough {
            return Ok(());
        }
        self.check_external_peers();
        self.check_losses()
    }

    /// Sends credit for what was consumed meanwhile to stalled senders, and reports the other stalled senders to the
    /// caller.
    fn serve_stalled(&mut self) -> Result<(), EndpointError> {
        for (src, allowed) in self.credits.review() {
            match allowed {
                Some(allowed) => self.grant(src, allowed)?,
                None => self.events.push_back(Event::Stalled { src }),
            }
        }
        Ok(())
    }

    /// Checks the receive timeout. To be called after a poll that found nothing to do.
    #[cold]
    fn check_receive_timeout(&mut self) -> Result<(), EndpointError> {
        let (inbound, groups) = (&self.inbound, &self.groups);
        let received = inbound.msgs + inbound.bytes + inbound.head_updates + self.offers.received;
        let shared = self.shared_groups.calls.load(Ordering::Relaxed);
        let mark = received + self.out.lanes().doorbells() + groups.begun + groups.doorbells + shared;
        let Some(receive_timeout) = &mut self.waiting.receive_timeout else { return Ok(()) };
        if !receive_timeout.is_over(mark, Instant::now()) {
            return Ok(());
        }
        let (after, first) = (receive_timeout.limit(), receive_timeout.is_first());
        if first {
            eprint!("{}", self.describe());
        }
        let injected = self.members.injector().map(|injector| injector.injected().to_string()).unwrap_or_default();
        Err(EndpointError::Stuck { rank: self.members.rank(), after, injected })
    }
}
