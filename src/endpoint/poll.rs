//! The progress engine: polls for arrivals and advances all other pending work.

use super::arrival::{Event, Look};
use super::outbound::TURN_BYTES;
use super::wire::Packet;
use super::{Endpoint, EndpointError};
use ntbring_ring::transfer::Transfer;

/// While a rank spins, one of this number of polls looks at everything: cold lanes, transit traffic, failures.
const THOROUGH_EVERY: u32 = 8;

/// Fruitless polls that each also check for transit traffic, after some has been forwarded.
const RELAY_HEAT: u32 = 1 << 14;

/// Thorough fruitless polls between two checks for dead processes, for callers that never wait.
const GLANCE_EVERY: u32 = 1 << 6;

/// Fruitless polls between two checks if their caller waits or only tests.
const TESTS: u32 = 1 << 4;

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
            Look::Vain { thorough } => self.nothing_found(thorough).map(|()| None),
            Look::Plain(plain) => Ok(Some(Event::Arrival(plain.into()))),
            Look::Other => self.look_closer(),
        }
    }

    /// True if there is work to do before anything new is received.
    #[inline(always)]
    pub(super) fn has_work(&self) -> bool {
        self.out.has_work() || self.remotes.has_work() || self.offers.has_work()
    }

    /// The fast half of a poll, for callers that handle single-entry messages without an event. The other half is
    /// [`Endpoint::follow`].
    #[inline(always)]
    pub fn look(&mut self) -> Look {
        if self.has_work() || self.odd {
            return Look::Other;
        }
        self.looks = self.looks.wrapping_add(1);
        // A rank that spins polls so often that cold lanes can wait; one that yields or sleeps has the time to look
        // at them.
        let thorough = self.looks % THOROUGH_EVERY == 0 || !self.idle.is_spinning();
        match self.inbound.look(thorough) {
            Look::Nothing if thorough || self.relay_heat > 0 => Look::Vain { thorough },
            Look::Plain(plain) => {
                self.idle.busy();
                Look::Plain(plain)
            }
            other => other,
        }
    }

    /// The slow half of a poll.
    #[inline]
    fn look_closer(&mut self) -> Result<Option<Event>, EndpointError> {
        // Events come before kept arrivals: no further entries are taken from a lane behind a kept one, so an
        // operation that has ended did so before it, and a payload is complete before any later message of its sender
        // is seen.
        if let Some(event) = self.offers.event() {
            self.idle.busy();
            return Ok(Some(event));
        }
        if self.odd {
            if self.out.checked {
                self.look_after()?;
            }
            if let Some(event) = self.take_kept()? {
                self.idle.busy();
                return Ok(Some(event));
            }
        }
        if self.out.has_work() {
            if self.out.advance()? {
                self.idle.busy();
            }
            if let Some(sent) = self.out.take_sent() {
                self.idle.busy();
                return Ok(Some(match sent.offered {
                    true => Event::Taken { cookie: sent.cookie },
                    false => Event::Sent { cookie: sent.cookie, handler: sent.handler },
                }));
            }
        }
        if self.remotes.has_work() && self.request_some() {
            self.idle.busy();
        }
        if self.offers.is_copying() {
            self.idle.busy();
            self.copy_some()?;
        }
        if let Some(event) = self.offers.event() {
            return Ok(Some(event));
        }
        let mut taken = 0;
        for _ in 0..INTERNAL_MAX {
            if taken >= TURN_BYTES {
                break;
            }
            if let Some(bytes) = self.settle_piece()? {
                self.idle.busy();
                taken += bytes;
                match self.offers.event() {
                    None => continue,
                    event => return Ok(event),
                }
            }
            let Some(arrival) = self.inbound.poll()? else { return self.nothing_found(true).map(|()| None) };
            self.idle.busy();
            taken += arrival.piece();
            if let Packet::Message { .. } = arrival.packet {
                return Ok(Some(Event::Arrival(arrival)));
            }
            if let Some(event) = self.settle(arrival)? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Forwards transit traffic, if this rank can. Returns true if there was any.
    pub(super) fn forward_some(&mut self) -> bool {
        let any = self.transfer.as_ref().is_some_and(|t| t.assist() > 0);
        if any {
            self.idle.busy();
            self.relay_heat = RELAY_HEAT;
        }
        self.relay_heat = self.relay_heat.saturating_sub(1);
        any
    }

    /// Does the rest of a poll that found no event; `thorough` if it looked at all lanes.
    fn nothing_found(&mut self, thorough: bool) -> Result<(), EndpointError> {
        self.forward_some();
        if let Some(error) = self.transfer.as_ref().and_then(Transfer::fault) {
            return Err(error.into());
        }
        if self.guests.mailbox.has_news() {
            self.read_mail()?;
        }
        if self.dump.fired() {
            self.describe_to_stderr();
        }
        if self.patience.is_some() {
            self.check_patience()?;
        }
        self.fruitless = self.fruitless.wrapping_add(1);
        self.serve_stalled()?;
        if self.fruitless % TESTS == 0 {
            self.idle.tested(TESTS);
        }
        if self.fruitless % GLANCE_EVERY == 0 {
            self.idle.glance();
        }
        if !thorough {
            return Ok(());
        }
        self.check_guests();
        self.check_losses()
    }
}
