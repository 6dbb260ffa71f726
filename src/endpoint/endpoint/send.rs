//! Sending, and offering and accepting large payloads.

use super::Endpoint;
use crate::arrival::Token;
use crate::error::EndpointError;
use crate::rendezvous::{Accepted, Action, Next};
use crate::sending::{Message, Sent};
use crate::wire::{Head, Offer, Packet};
use ntbring_memory::{ForeignBytes, ForeignRoom};
use ntbring_timeline::Way;
use ntbring_zerocopy::Protocol;

impl Endpoint {
    /// Sends a message, or queues it until there is room. See [`Sent`].
    #[inline]
    pub fn send(&mut self, message: Message<'_>) -> Result<Sent, EndpointError> {
        let dest = message.dest;
        self.offers.preferences.spend(dest, message.payload.len());
        // The result is taken apart and rebuilt: a move of the whole value reads it in other units than it was written
        // in, and would wait until the payload has left the processor's store buffer.
        let sent = self.out.send(message, &self.thresholds)?;
        if self.waiting.polls.odd {
            self.out.carry(dest);
        }
        Ok(sent)
    }

    /// Sends a message, if there is room for it right now and it needs no rendezvous.
    #[inline]
    pub fn send_now(&mut self, message: &Message<'_>) -> Result<bool, EndpointError> {
        let (dest, bytes) = (message.dest, message.header.len() as u64 + message.payload.len());
        let plain = bytes <= self.thresholds.plain_max() as u64;
        let protocol = if plain { Protocol::Packed } else { self.thresholds.choose(bytes, self.is_copied_for(dest)) };
        let sent = match protocol {
            Protocol::Packed => self.out.send_now(message, &self.thresholds)?,
            Protocol::Chunked => self.out.send_pieces(message),
            Protocol::Rendezvous => return Ok(false),
        };
        if sent && !plain {
            self.offers.preferences.spend(dest, message.payload.len());
        }
        if self.waiting.polls.odd {
            self.out.carry(dest);
        }
        Ok(sent)
    }

    /// Sends an eager message by the fast path. Returns false if that is not possible; then [`Endpoint::send_now`]
    /// must be called.
    #[inline(always)]
    pub fn send_plain(&mut self, dest: u32, head: Head, header: &[u8], payload: ForeignBytes) -> bool {
        !self.waiting.polls.odd && self.out.send_plain(dest, head, header, payload, self.thresholds.plain_max())
    }

    /// Returns the size in bytes, header and payload, of the largest message that is sent to a rank without rendezvous.
    pub fn eager_max(&self, dest: u32) -> usize {
        self.thresholds.eager_max(self.is_copied_for(dest))
    }

    /// True if kernel copies to a rank are possible and the rank has not announced that it prefers eager messages.
    fn is_copied_for(&self, dest: u32) -> bool {
        self.members.kernel_copy(dest).is_some() && !self.offers.preferences.prefers_eager(dest)
    }

    /// Sends a message's header (RTS) and keeps its payload, which must not be empty, for the receiver to fetch. An
    /// [`crate::Event::Taken`] reports that the payload is no longer needed.
    pub fn offer(&mut self, m: Message<'_>) -> Result<(), EndpointError> {
        self.out.check(&m, Way::Rendezvous)?;
        if m.payload.is_empty() {
            return Err(EndpointError::Argument("the payload of an offer must not be empty".into()));
        }
        if self.out.is_lost(m.dest) {
            return Ok(());
        }
        let offer = self.offers.offer(m.dest, m.payload, m.cookie);
        let packet = Packet::Rts { head: m.head, header: m.header.len(), offer };
        self.out.send_offer(m.dest, packet, m.header, m.head.handler)
    }

    /// Cancels the message or offer with this cookie if no part of it has left. Returns true if it was cancelled.
    pub fn retract(&mut self, dest: u32, cookie: usize) -> Result<bool, EndpointError> {
        let taken = self.out.retract(dest, cookie, self.offers.number(cookie))?;
        if taken {
            self.offers.forget(cookie);
        }
        Ok(taken)
    }

    /// Drops the offer with this cookie, because the receiver will not fetch it. Returns true if there was one.
    pub fn forget_offer(&mut self, cookie: usize) -> bool {
        self.offers.forget(cookie)
    }

    /// Accepts the first `size` bytes of an offer (CTS): into `room`, or, without it, as chunks that carry the cookie.
    pub fn accept(
        &mut self,
        src: u32,
        offer: Offer,
        room: Option<ForeignRoom<'static>>,
        size: u64,
        cookie: usize,
    ) -> Result<Accepted, EndpointError> {
        if self.out.is_lost(src) {
            return Ok(Accepted::Pending);
        }
        let next =
            self.offers.accept((src, offer), room, size, cookie, self.members.kernel_copy(src), &self.thresholds)?;
        // The sender begins its copy before this rank begins its own.
        self.carry_out()?;
        let accepted = match next {
            Next::Nothing => Accepted::Done,
            Next::Wait => Accepted::Pending,
            Next::Copy => self.offers.copy_first(cookie),
        };
        self.carry_out()?;
        Ok(accepted)
    }

    /// Directs the payload of a message that has begun to arrive into `room`; the rest of a longer payload is dropped.
    /// An [`crate::Event::Fetched`] with the cookie given to [`Endpoint::release`] reports its end; its chunks are not
    /// shown to the caller.
    pub fn place_at(&mut self, begun: Token, room: ForeignRoom<'static>) {
        self.inbound.direct(begun, room);
    }

    /// Carries out the actions that the rendezvous protocol has returned.
    #[inline]
    pub(super) fn carry_out(&mut self) -> Result<(), EndpointError> {
        while let Some(action) = self.offers.next_action() {
            match action {
                Action::Send { dest, packet } => self.out.send_bare(dest, packet, &[])?,
                Action::Feed { dest, fetch, payload, cookie } => self.out.feed(dest, fetch, payload, cookie)?,
                Action::Event(event) => self.events.push_back(event),
            }
        }
        Ok(())
    }

    /// Sets the handlers whose messages may have to be kept as unexpected; one bit for each. It must be called before
    /// the first message is sent, with the same value on all ranks.
    pub fn charge(&mut self, handlers: u64) {
        self.out.credit_policy.charge(handlers);
    }

    /// Returns the cost of a message that has arrived.
    #[inline(always)]
    pub fn cost(&self, handler: u16, payload: u64) -> u64 {
        self.out.credit_policy.cost(handler, payload)
    }

    /// Records that a message of cost `cost` is no longer kept.
    #[inline]
    pub fn discharge(&mut self, src: u32, cost: u64) -> Result<(), EndpointError> {
        match self.credits.discharge(src, cost)? {
            Some(allowed) => self.grant(src, allowed),
            None => Ok(()),
        }
    }

    /// Grants a stalled sender more than its share, because the caller waits for a message that the sender may hold;
    /// `src` None means any sender. With `delayed`, only a sender that has been stalled for a while gets more.
    pub fn allow_more(&mut self, src: Option<u32>, delayed: bool) -> Result<(), EndpointError> {
        if !self.credits.any_stalled() {
            return Ok(());
        }
        let grants = self.credits.allow_more(src, delayed, std::time::Instant::now());
        grants.into_iter().try_for_each(|(src, allowed)| self.grant(src, allowed))
    }

    /// Sends a sender its new limit.
    pub(super) fn grant(&mut self, src: u32, allowed: u64) -> Result<(), EndpointError> {
        self.out.send_bare(src, Packet::Credit { allowed }, &[])
    }

    /// Returns true if messages wait for credit.
    pub fn is_holding(&self) -> bool {
        self.out.is_holding()
    }
}
