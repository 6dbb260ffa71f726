//! Messages that wait at their sender for credit (see `endpoint::credit`).

use super::super::wire::Packet;
use super::super::EndpointError;
use super::flow::{Opening, Waiting};
use super::Outbound;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// The flow-control credit of a flow, at the sender.
#[derive(Default)]
pub(in super::super) struct Allowance {
    /// Total cost of all messages sent, without those in `held`.
    charged: u64,
    /// Limit of `charged`, as last received from the receiver.
    pub(super) allowed: u64,
    /// Messages that wait for credit, each with its cost.
    held: VecDeque<(Waiting, u64)>,
    /// True if the receiver was sent a STALLED for the current limit.
    told: bool,
    /// For each other rank whose STALLED was passed on to this receiver: the latest number.
    passed: SmallVec<[(u32, u32); 4]>,
}

impl Allowance {
    pub(super) fn new(allowed: u64) -> Allowance {
        Allowance { allowed, ..Allowance::default() }
    }

    /// True if a message of this cost can be sent now.
    #[inline(always)]
    pub(super) fn admits(&self, cost: u64) -> bool {
        cost == 0 || self.held.is_empty() && self.charged + cost <= self.allowed
    }

    #[inline(always)]
    pub(super) fn spend(&mut self, cost: u64) {
        self.charged += cost;
    }

    /// Returns the next held message for which there is credit by now.
    fn next(&mut self) -> Option<Waiting> {
        let (_, cost) = self.held.front()?;
        if self.charged + cost > self.allowed {
            return None;
        }
        let (waiting, cost) = self.held.pop_front()?;
        self.charged += cost;
        Some(waiting)
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Drops the held messages. Returns their number.
    pub(super) fn forget(&mut self) -> usize {
        std::mem::take(&mut self.held).len()
    }
}

impl Outbound {
    /// Sends the header of a message whose payload is offered (RTS).
    pub fn send_offer(&mut self, dest: u32, packet: Packet, header: &[u8], handler: u16) -> Result<(), EndpointError> {
        let waiting = Waiting::Bare { packet, header: SmallVec::from_slice(header) };
        let cost = self.tariff.cost(handler, 0);
        if !self.flows[dest as usize].allowance.admits(cost) {
            return self.hold(dest, waiting, cost);
        }
        self.flows[dest as usize].allowance.spend(cost);
        self.queue(dest, waiting)
    }

    /// Holds a message until there is credit for it.
    #[cold]
    pub(super) fn hold(&mut self, dest: u32, waiting: Waiting, cost: u64) -> Result<(), EndpointError> {
        self.flows[dest as usize].allowance.held.push_back((waiting, cost));
        self.held += 1;
        self.held_ever += 1;
        self.tell(dest)
    }

    /// Sends the receiver a STALLED, unless it has one for the current limit.
    fn tell(&mut self, dest: u32) -> Result<(), EndpointError> {
        let allowance = &mut self.flows[dest as usize].allowance;
        if std::mem::replace(&mut allowance.told, true) {
            return Ok(());
        }
        self.stalls = self.stalls.wrapping_add(1);
        let stalled = Packet::Stalled { origin: self.me, number: self.stalls, allowed: allowance.allowed };
        self.send_bare(dest, stalled, &[])
    }

    /// Passes the STALLED of `origin` on to all receivers for whose credit this rank waits; each number once.
    pub fn pass_on(&mut self, origin: u32, number: u32) -> Result<(), EndpointError> {
        for dest in 0..self.flows.len() as u32 {
            if self.held == 0 || !self.holds_for(dest) {
                continue;
            }
            let Allowance { passed, allowed, .. } = &mut self.flows[dest as usize].allowance;
            match passed.iter_mut().find(|p| p.0 == origin) {
                // An old STALLED that comes round again must not circulate behind the new one for ever.
                Some((_, latest)) if (number.wrapping_sub(*latest) as i32) <= 0 => continue,
                Some((_, latest)) => *latest = number,
                None => passed.push((origin, number)),
            }
            let stalled = Packet::Stalled { origin, number, allowed: *allowed };
            self.send_bare(dest, stalled, &[])?;
        }
        Ok(())
    }

    /// Cancels a message that is still queued here: the one with this cookie, or the offer with this number. Returns
    /// true if it was cancelled.
    pub fn retract(&mut self, dest: u32, cookie: usize, offer: Option<u32>) -> Result<bool, EndpointError> {
        let Some(flow) = self.flows.get_mut(dest as usize) else { return Ok(false) };
        // A message without completion event has a cookie that may be in use for another one by now.
        let is_it = |waiting: &Waiting| match waiting {
            Waiting::Whole { cookie: c, awaited, .. } => *awaited && *c == cookie,
            Waiting::Pieces { opening: Opening::Begin(_), cookie: c, .. } => *c == cookie,
            Waiting::Bare { packet: Packet::Offer { offer: o, .. }, .. } => Some(o.id) == offer,
            _ => false,
        };
        if let Some(i) = flow.allowance.held.iter().position(|(waiting, _)| is_it(waiting)) {
            flow.allowance.held.remove(i);
            self.held -= 1;
            // The next message that is held is a new stall, of which the receiver does not know.
            flow.allowance.told &= !flow.allowance.held.is_empty();
        } else {
            let found = flow.line.waiting.iter().position(is_it).and_then(|i| flow.line.waiting.remove(i));
            let (handler, payload) = match &found {
                Some(Waiting::Whole { head, payload, .. })
                | Some(Waiting::Pieces { opening: Opening::Begin(head), payload, .. }) => (head.handler, payload.len()),
                Some(Waiting::Bare { packet: Packet::Offer { head, .. }, .. }) => (head.handler, 0),
                _ => return Ok(false),
            };
            // The message will never be consumed.
            flow.allowance.charged -= self.tariff.cost(handler, payload);
        }
        self.let_go(dest).map(|()| true)
    }

    /// Sends held messages for which there is credit by now.
    fn let_go(&mut self, dest: u32) -> Result<(), EndpointError> {
        while let Some(waiting) = self.flows[dest as usize].allowance.next() {
            self.held -= 1;
            self.queue(dest, waiting)?;
        }
        Ok(())
    }

    /// True if messages to this peer wait for credit.
    pub fn holds_for(&self, dest: u32) -> bool {
        self.flows[dest as usize].allowance.len() > 0
    }

    /// Applies the new limit of a receiver.
    pub fn credited(&mut self, dest: u32, allowed: u64) -> Result<(), EndpointError> {
        let allowance = &mut self.flows[dest as usize].allowance;
        allowance.allowed = allowance.allowed.max(allowed);
        allowance.told = false;
        self.let_go(dest)?;
        if self.holds_for(dest) {
            self.tell(dest)?;
        }
        Ok(())
    }
}
