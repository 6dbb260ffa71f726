//! The credit that one receiver has given, and the messages that wait for more of it.

use super::line::Waiting;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::time::Instant;

/// The flow-control credit of a flow, at the sender.
#[derive(Default)]
pub struct Allowance {
    /// Total cost of all messages sent, without those in `held`.
    charged: u64,
    /// Limit of `charged`, as last received from the receiver.
    allowed: u64,
    /// Messages that wait for credit, each with its cost and the time since which it waits.
    held: VecDeque<(Waiting, u64, Instant)>,
    /// True if a STALLED packet was sent to the receiver for the current limit.
    stall_sent: bool,
    /// For each other rank whose STALLED was passed on to this receiver: the latest number.
    passed: SmallVec<[(u32, u32); 4]>,
}

impl Allowance {
    pub fn new(allowed: u64) -> Allowance {
        Allowance { allowed, ..Allowance::default() }
    }

    /// True if a message of this cost can be sent now.
    #[inline(always)]
    pub fn admits(&self, cost: u64) -> bool {
        cost == 0 || self.held.is_empty() && self.charged + cost <= self.allowed
    }

    #[inline(always)]
    pub fn spend(&mut self, cost: u64) {
        self.charged += cost;
    }

    /// Gives back the cost of a message that the receiver will never consume.
    pub fn refund(&mut self, cost: u64) {
        self.charged -= cost;
    }

    /// Holds a message until there is credit for it.
    pub fn hold(&mut self, waiting: Waiting, cost: u64) {
        self.held.push_back((waiting, cost, Instant::now()));
    }

    /// Applies a limit of the receiver.
    pub fn raise(&mut self, allowed: u64) {
        self.allowed = self.allowed.max(allowed);
        self.stall_sent = false;
    }

    /// Returns the limit that a STALLED to the receiver must name; None if the receiver has one for that limit.
    pub fn stall(&mut self) -> Option<u64> {
        (!std::mem::replace(&mut self.stall_sent, true)).then_some(self.allowed)
    }

    /// Returns the limit that the STALLED of another rank must name when it is passed on to the receiver; None if no
    /// message waits, or if this number or a later one was passed on.
    pub fn pass_on(&mut self, origin: u32, number: u32) -> Option<u64> {
        if self.held.is_empty() {
            return None;
        }
        match self.passed.iter_mut().find(|p| p.0 == origin) {
            // An old STALLED that comes round again must not circulate behind the new one for ever.
            Some((_, latest)) if (number.wrapping_sub(*latest) as i32) <= 0 => return None,
            Some((_, latest)) => *latest = number,
            None => self.passed.push((origin, number)),
        }
        Some(self.allowed)
    }

    /// Returns the next held message for which there is credit by now, and the time since which it has waited.
    pub fn next(&mut self) -> Option<(Waiting, Instant)> {
        let (_, cost, _) = self.held.front()?;
        if self.charged + cost > self.allowed {
            return None;
        }
        let (waiting, cost, since) = self.held.pop_front()?;
        self.charged += cost;
        Some((waiting, since))
    }

    /// Drops the first held message for which `is_it` holds. Returns false if there is none.
    pub fn retract(&mut self, is_it: impl Fn(&Waiting) -> bool) -> bool {
        let found = self.held.iter().position(|(waiting, ..)| is_it(waiting));
        if let Some(i) = found {
            self.held.remove(i);
            // The next message that is held is a new stall, of which the receiver does not know.
            self.stall_sent &= !self.held.is_empty();
        }
        found.is_some()
    }

    /// Returns the number of held messages.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns the bytes of the payloads of the held messages.
    pub fn bytes(&self) -> u64 {
        self.held.iter().map(|(waiting, ..)| waiting.payload_len()).sum()
    }

    /// Drops the held messages. Returns their number.
    pub fn forget(&mut self) -> usize {
        std::mem::take(&mut self.held).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Packet;

    fn message(number: u32) -> Waiting {
        Waiting::Bare { packet: Packet::Taken { offer: number }, header: SmallVec::new() }
    }

    fn is(number: u32) -> impl Fn(&Waiting) -> bool {
        move |waiting| matches!(waiting, Waiting::Bare { packet: Packet::Taken { offer }, .. } if *offer == number)
    }

    #[test]
    fn messages_are_held_in_order_until_the_limit_rises() {
        let mut allowance = Allowance::new(100);
        assert!(allowance.admits(100) && !allowance.admits(101));
        allowance.spend(60);
        allowance.hold(message(1), 50);
        // A smaller message waits behind it; one that is not charged does not.
        assert!(!allowance.admits(10) && allowance.admits(0));
        allowance.hold(message(2), 10);
        assert!(allowance.next().is_none());
        allowance.raise(110);
        assert!(allowance.next().is_some_and(|(waiting, _)| is(1)(&waiting)));
        assert!(allowance.next().is_none());
        // A limit that arrives late changes nothing.
        allowance.raise(90);
        allowance.refund(50);
        assert!(allowance.next().is_some_and(|(waiting, _)| is(2)(&waiting)));
        assert_eq!(allowance.len(), 0);
    }

    #[test]
    fn a_limit_is_reported_once_and_a_stall_of_others_is_passed_on_once() {
        let mut allowance = Allowance::new(100);
        assert_eq!(allowance.pass_on(7, 1), None);
        allowance.hold(message(1), 200);
        assert_eq!((allowance.stall(), allowance.stall()), (Some(100), None));
        assert_eq!((allowance.pass_on(7, 1), allowance.pass_on(7, 1)), (Some(100), None));
        assert_eq!((allowance.pass_on(7, 2), allowance.pass_on(7, 1)), (Some(100), None));
        allowance.raise(150);
        assert_eq!(allowance.stall(), Some(150));
        // A message that is held after all others were cancelled is a new stall.
        assert!(!allowance.retract(is(2)) && allowance.retract(is(1)));
        assert_eq!(allowance.stall(), Some(150));
        allowance.hold(message(3), 200);
        assert_eq!((allowance.forget(), allowance.len()), (1, 0));
    }
}
