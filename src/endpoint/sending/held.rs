//! Messages that wait at their sender for credit (see `flow_control`), and the cancellation of messages.

use super::line::{Opening, Waiting};
use super::outbound::Outbound;
use crate::error::EndpointError;
use crate::wire::Packet;
use smallvec::SmallVec;

impl Outbound {
    /// Sends the header of a message whose payload is offered (RTS).
    pub fn send_offer(&mut self, dest: u32, packet: Packet, header: &[u8], handler: u16) -> Result<(), EndpointError> {
        let waiting = Waiting::Bare { packet, header: SmallVec::from_slice(header) };
        let cost = self.credit_policy.cost(handler, 0);
        if !self.flows[dest as usize].allowance.admits(cost) {
            return self.hold(dest, waiting, cost);
        }
        self.flows[dest as usize].allowance.spend(cost);
        self.queue(dest, waiting)
    }

    /// Holds a message until there is credit for it.
    #[cold]
    pub(super) fn hold(&mut self, dest: u32, waiting: Waiting, cost: u64) -> Result<(), EndpointError> {
        self.flows[dest as usize].allowance.hold(waiting, cost);
        self.held += 1;
        self.counts.held += 1;
        self.send_stalled(dest)
    }

    /// Sends the receiver a STALLED, unless it has one for the current limit.
    fn send_stalled(&mut self, dest: u32) -> Result<(), EndpointError> {
        let Some(allowed) = self.flows[dest as usize].allowance.stall() else { return Ok(()) };
        self.stalls = self.stalls.wrapping_add(1);
        self.send_bare(dest, Packet::Stalled { origin: self.me, number: self.stalls, allowed }, &[])
    }

    /// Passes the STALLED of `origin` on to all receivers for whose credit this rank waits; each number once.
    pub fn pass_on(&mut self, origin: u32, number: u32) -> Result<(), EndpointError> {
        for dest in 0..self.flows.len() {
            if self.held == 0 {
                break;
            }
            if let Some(allowed) = self.flows[dest].allowance.pass_on(origin, number) {
                self.send_bare(dest as u32, Packet::Stalled { origin, number, allowed }, &[])?;
            }
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
            Waiting::Bare { packet: Packet::Rts { offer: o, .. }, .. } => Some(o.id) == offer,
            _ => false,
        };
        if flow.allowance.retract(is_it) {
            self.held -= 1;
        } else {
            let found = flow.line.waiting.iter().position(is_it).and_then(|i| flow.line.waiting.remove(i));
            let (handler, payload) = match &found {
                Some(Waiting::Whole { head, payload, .. })
                | Some(Waiting::Pieces { opening: Opening::Begin(head), payload, .. }) => (head.handler, payload.len()),
                Some(Waiting::Bare { packet: Packet::Rts { head, .. }, .. }) => (head.handler, 0),
                _ => return Ok(false),
            };
            flow.allowance.refund(self.credit_policy.cost(handler, payload));
        }
        self.release(dest).map(|()| true)
    }

    /// Sends held messages for which there is credit by now.
    fn release(&mut self, dest: u32) -> Result<(), EndpointError> {
        while let Some((waiting, since)) = self.flows[dest as usize].allowance.next() {
            self.held -= 1;
            self.counts.held_for.count_time(since.elapsed());
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
        self.flows[dest as usize].allowance.raise(allowed);
        self.release(dest)?;
        if self.holds_for(dest) {
            self.send_stalled(dest)?;
        }
        Ok(())
    }
}
