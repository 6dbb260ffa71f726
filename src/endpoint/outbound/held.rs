//! Messages that wait for credit (see `endpoint::credit`), at their sender.

use super::super::wire::Packet;
use super::super::EndpointError;
use super::flow::{Opening, Waiting};
use super::Outbound;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// What a flow may send of what is charged.
#[derive(Default)]
pub(in super::super) struct Allowance {
    /// What all messages have cost that were sent, not counting those below.
    charged: u64,
    /// As the receiver has said.
    pub(super) allowed: u64,
    /// Messages that wait, and what they cost.
    held: VecDeque<(Waiting, u64)>,
    /// Whether the receiver was told so.
    told: bool,
    /// Of other ranks' STALLED: the latest number of each that the receiver was sent.
    passed: SmallVec<[(u32, u32); 4]>,
}

impl Allowance {
    pub(super) fn new(allowed: u64) -> Allowance {
        Allowance { allowed, ..Allowance::default() }
    }

    /// Whether a message of that cost can be sent now.
    #[inline(always)]
    pub(super) fn admits(&self, cost: u64) -> bool {
        cost == 0 || self.held.is_empty() && self.charged + cost <= self.allowed
    }

    #[inline(always)]
    pub(super) fn spend(&mut self, cost: u64) {
        self.charged += cost;
    }

    /// The next message that is not held any more.
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

    /// Forgets the messages that wait; how many they were.
    pub(super) fn forget(&mut self) -> usize {
        std::mem::take(&mut self.held).len()
    }
}

impl Outbound {
    /// Sends the header of a message whose payload is offered.
    pub fn send_offer(&mut self, dest: u32, packet: Packet, header: &[u8], handler: u16) -> Result<(), EndpointError> {
        let waiting = Waiting::Bare { packet, header: SmallVec::from_slice(header) };
        let cost = self.tariff.cost(handler, 0);
        if !self.flows[dest as usize].allowance.admits(cost) {
            return self.hold(dest, waiting, cost);
        }
        self.flows[dest as usize].allowance.spend(cost);
        self.queue(dest, waiting)
    }

    /// Keeps a message until there is credit for it.
    #[cold]
    pub(super) fn hold(&mut self, dest: u32, waiting: Waiting, cost: u64) -> Result<(), EndpointError> {
        self.flows[dest as usize].allowance.held.push_back((waiting, cost));
        self.held += 1;
        self.held_ever += 1;
        self.tell(dest)
    }

    /// Tells a receiver that this rank waits for its credit, unless it knows.
    fn tell(&mut self, dest: u32) -> Result<(), EndpointError> {
        let allowance = &mut self.flows[dest as usize].allowance;
        if std::mem::replace(&mut allowance.told, true) {
            return Ok(());
        }
        self.stalls = self.stalls.wrapping_add(1);
        let stalled = Packet::Stalled { origin: self.me, number: self.stalls, allowed: allowance.allowed };
        self.send_bare(dest, stalled, &[])
    }

    /// Tells all whose credit is waited for that `origin` waits too, for this rank; once each.
    pub fn pass_on(&mut self, origin: u32, number: u32) -> Result<(), EndpointError> {
        for dest in 0..self.flows.len() as u32 {
            if self.held == 0 || !self.holds_for(dest) {
                continue;
            }
            let Allowance { passed, allowed, .. } = &mut self.flows[dest as usize].allowance;
            match passed.iter_mut().find(|p| p.0 == origin) {
                // An old one that comes round again must not chase the new one for ever.
                Some((_, latest)) if (number.wrapping_sub(*latest) as i32) <= 0 => continue,
                Some((_, latest)) => *latest = number,
                None => passed.push((origin, number)),
            }
            let stalled = Packet::Stalled { origin, number, allowed: *allowed };
            self.send_bare(dest, stalled, &[])?;
        }
        Ok(())
    }

    /// Takes a message back that waits here: the one with this cookie, or the offer with this number.
    pub fn retract(&mut self, dest: u32, cookie: usize, offer: Option<u32>) -> Result<bool, EndpointError> {
        let Some(flow) = self.flows.get_mut(dest as usize) else { return Ok(false) };
        // What nobody awaits has a cookie that may be another's by now.
        let is_it = |waiting: &Waiting| match waiting {
            Waiting::Whole { cookie: c, awaited, .. } => *awaited && *c == cookie,
            Waiting::Pieces { opening: Opening::Begin(_), cookie: c, .. } => *c == cookie,
            Waiting::Bare { packet: Packet::Offer { offer: o, .. }, .. } => Some(o.id) == offer,
            _ => false,
        };
        if let Some(i) = flow.allowance.held.iter().position(|(waiting, _)| is_it(waiting)) {
            flow.allowance.held.remove(i);
            self.held -= 1;
            // If something is held again, the receiver does not know it.
            flow.allowance.told &= !flow.allowance.held.is_empty();
        } else {
            let found = flow.line.waiting.iter().position(is_it).and_then(|i| flow.line.waiting.remove(i));
            let (handler, payload) = match &found {
                Some(Waiting::Whole { head, payload, .. })
                | Some(Waiting::Pieces { opening: Opening::Begin(head), payload, .. }) => (head.handler, payload.len()),
                Some(Waiting::Bare { packet: Packet::Offer { head, .. }, .. }) => (head.handler, 0),
                _ => return Ok(false),
            };
            // It will never be consumed.
            flow.allowance.charged -= self.tariff.cost(handler, payload);
        }
        self.let_go(dest).map(|()| true)
    }

    /// Sends what is not held any more.
    fn let_go(&mut self, dest: u32) -> Result<(), EndpointError> {
        while let Some(waiting) = self.flows[dest as usize].allowance.next() {
            self.held -= 1;
            self.queue(dest, waiting)?;
        }
        Ok(())
    }

    /// Whether messages for this peer wait for credit.
    pub fn holds_for(&self, dest: u32) -> bool {
        self.flows[dest as usize].allowance.len() > 0
    }

    /// A receiver allows so much by now.
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
