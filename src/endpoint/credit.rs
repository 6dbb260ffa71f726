//! Flow control: limits the bytes of unexpected messages that each sender may have at a receiver.
//!
//! ```text
//!   sender                                          receiver
//!   |                                                 |
//!   | charged += cost ------------ message ---------> |  matched at once, or kept as unexpected
//!   |                                                 |  consumed += cost once it is no longer kept, in either case
//!   | <- CREDIT allowed = consumed + share ---------- |  once per quarter of a share
//!   |                                                 |
//!   | charged + cost > allowed: held                  |
//!   | ---------------------------- STALLED ---------> |  credit for consumed bytes is sent at once; if there are
//!   |                                                 |  none, and a receive waits for this sender: beyond the share
//! ```
//!
//! A STALLED that has crossed a CREDIT is answered by that CREDIT: a sender that still holds messages after it has
//! received the CREDIT sends STALLED again.
//!
//! Only messages that are matched with receives are charged. Rendezvous answers, acknowledgements and one-sided
//! operations never wait for credit, and overtake messages that do.
//!
//! Ranks that all send and hold messages for each other, while none of them receives, would deadlock. Therefore
//! STALLED names the rank at which it began (`origin`), and a receiver that is itself stalled passes it on to the
//! ranks that it waits for. When it returns to its origin there is a cycle, and the origin grants more than the
//! share. A rank that stalls again sends STALLED with the next number, because the ranks on the path of the previous
//! one may not have been stalled at that time.

use super::wire::Packet;
use super::{Endpoint, EndpointError, Event};
use std::time::{Duration, Instant};

/// Cost in bytes of a message beside its payload: about the memory that MPICH needs for an unexpected message.
const KEEPING: u64 = 2048;

/// Smallest share of one sender in bytes: several times the highest cost of a message sent without rendezvous.
const SHARE_MIN: u64 = 512 << 10;

/// Time that a receiver with a wildcard receive lets a sender stall before it grants more than the share.
const PATIENCE: Duration = Duration::from_millis(10);

/// Reasons for which a sender may exceed its share, for the log.
const AWAITED: &str = "a receive waits for one that comes behind them";
const CIRCLE: &str = "ranks send to each other and none of them receives";

/// Number of fruitless polls between two questions to the caller about stalled senders.
const ASK_EVERY: u32 = 16;

/// The messages that are charged, and the credit of one sender at a receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tariff {
    /// One bit for each handler: set if its messages are charged.
    handlers: u64,
    /// Share of one sender in bytes.
    pub share: u64,
}

impl Tariff {
    /// Divides `total` bytes among all other ranks of the job. None: the share is unlimited.
    pub fn new(total: Option<u64>, ranks: usize) -> Tariff {
        let senders = ranks.saturating_sub(1).max(1) as u64;
        let share = total.map_or(u64::MAX / 4, |total| (total / senders).max(SHARE_MIN));
        Tariff { handlers: 0, share }
    }

    /// Returns the cost of a message with `payload` bytes; 0 if its handler is not charged.
    #[inline(always)]
    pub fn cost(&self, handler: u16, payload: u64) -> u64 {
        if self.handlers >> (handler & 63) & 1 == 0 {
            0
        } else {
            KEEPING + payload
        }
    }
}

/// The account of one sender at this receiver.
#[derive(Clone, Debug)]
struct Account {
    /// Bytes of charged messages that are no longer kept.
    consumed: u64,
    /// Limit of charged bytes, as last sent to the sender.
    allowed: u64,
    /// True after the first CREDIT; until then the sender may assume another share.
    told: bool,
    /// Time since which the sender has been stalled.
    stalled: Option<Instant>,
}

/// The accounts of all senders at this receiver.
pub(super) struct Credits {
    accounts: Vec<Account>,
    share: u64,
    /// Number of stalled senders.
    stalled: usize,
    /// True once the user was warned that more is kept than NTBRING_UNEXPECTED allows.
    warned: bool,
    /// True once this rank posts no more receives.
    leaving: bool,
}

impl Credits {
    pub fn new(share: u64, ranks: usize) -> Credits {
        let mut credits = Credits { accounts: Vec::new(), share, stalled: 0, warned: false, leaving: false };
        credits.admit(ranks.saturating_sub(1));
        credits
    }

    /// Makes room for accounts of peers up to number `peer`.
    pub fn admit(&mut self, peer: usize) {
        if self.accounts.len() <= peer {
            self.accounts.resize(peer + 1, self.new_account());
        }
    }

    /// Resets the account of a peer number that has a new peer.
    pub fn renew(&mut self, peer: u32) {
        self.accounts[peer as usize] = self.new_account();
    }

    fn new_account(&self) -> Account {
        Account { consumed: 0, allowed: self.share, told: false, stalled: None }
    }

    /// Returns a quarter of a share.
    fn step(&self) -> u64 {
        self.share / 4
    }

    /// Returns the new limit to be sent to a sender, if it is higher than the last one.
    fn credit(&mut self, src: u32) -> Option<u64> {
        let account = &mut self.accounts[src as usize];
        let allowed = if self.leaving { u64::MAX / 2 } else { account.consumed.saturating_add(self.share) };
        (allowed > account.allowed).then(|| {
            (account.allowed, account.told) = (allowed, true);
            self.stalled -= usize::from(account.stalled.take().is_some());
            allowed
        })
    }

    /// Returns a new limit beyond the share if the sender has been stalled for at least `patience`.
    fn exceed(&mut self, src: u32, patience: Duration) -> Option<u64> {
        let step = self.step();
        let account = &mut self.accounts[src as usize];
        account.stalled.filter(|since| since.elapsed() >= patience)?;
        account.stalled = None;
        account.allowed = account.allowed.saturating_add(step);
        account.told = true;
        self.stalled -= 1;
        Some(account.allowed)
    }

    /// Records that a sender stalled at limit `allowed`. Returns false if a higher limit is already under way to it.
    fn has_stalled(&mut self, src: u32, allowed: u64) -> bool {
        let account = &mut self.accounts[src as usize];
        if account.told && allowed < account.allowed {
            return false;
        }
        if account.stalled.replace(Instant::now()).is_none() {
            self.stalled += 1;
        }
        true
    }

    /// Clears the stalled state of a sender that was lost.
    pub fn lose(&mut self, src: u32) {
        self.stalled -= usize::from(self.accounts[src as usize].stalled.take().is_some());
    }

    fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.accounts.len() as u32).filter(|&src| self.accounts[src as usize].stalled.is_some())
    }

    /// Returns a line for each stalled sender.
    pub fn describe(&self) -> Vec<String> {
        let line = |src: u32| {
            let a = &self.accounts[src as usize];
            format!("rank {src} holds messages: it may have {} bytes here, and {} were consumed", a.allowed, a.consumed)
        };
        self.waiting().map(line).collect()
    }
}

impl Endpoint {
    /// Sets the handlers whose messages may have to be kept as unexpected; one bit for each. It must be called before
    /// the first message is sent, with the same value on all ranks.
    pub fn charge(&mut self, handlers: u64) {
        self.out.tariff.handlers = handlers;
    }

    /// Returns the cost of a message that has arrived.
    #[inline(always)]
    pub fn cost(&self, handler: u16, payload: u64) -> u64 {
        self.out.tariff.cost(handler, payload)
    }

    /// Records that a message of cost `cost` is no longer kept.
    #[inline]
    pub fn discharge(&mut self, src: u32, cost: u64) -> Result<(), EndpointError> {
        let step = self.credits.step();
        let Some(account) = self.credits.accounts.get_mut(src as usize) else {
            return Err(EndpointError::Argument(format!("there is no peer {src} whose message could be consumed")));
        };
        // A damaged header may claim any cost.
        account.consumed = account.consumed.saturating_add(cost);
        if account.consumed.saturating_add(self.credits.share - step) >= account.allowed {
            self.give(src)?;
        }
        Ok(())
    }

    /// Sends a sender its new limit. Returns false if the limit has not changed.
    fn give(&mut self, src: u32) -> Result<bool, EndpointError> {
        let Some(allowed) = self.credits.credit(src) else { return Ok(false) };
        self.out.send_bare(src, Packet::Credit { allowed }, &[])?;
        Ok(true)
    }

    /// Grants a stalled sender more than its share, because the caller waits for a message that the sender may hold;
    /// `src` None means any sender. With `patient`, only a sender that has been stalled for a while gets more.
    pub fn allow_more(&mut self, src: Option<u32>, patient: bool) -> Result<(), EndpointError> {
        if self.credits.stalled == 0 {
            return Ok(());
        }
        let patience = if patient { PATIENCE } else { Duration::ZERO };
        let wanted: Vec<u32> = self.credits.waiting().filter(|&s| src.is_none_or(|src| src == s)).collect();
        for src in wanted {
            if !self.give(src)? {
                self.give_more(src, patience, AWAITED)?;
            }
        }
        Ok(())
    }

    fn give_more(&mut self, src: u32, patience: Duration, why: &str) -> Result<(), EndpointError> {
        let Some(allowed) = self.credits.exceed(src, patience) else { return Ok(()) };
        if !std::mem::replace(&mut self.credits.warned, true) {
            log::warn!(
                "rank {}: more messages of rank {src} that were not asked for are kept than NTBRING_UNEXPECTED allows: {why}",
                self.members.rank()
            );
        }
        self.out.send_bare(src, Packet::Credit { allowed }, &[])
    }

    /// Handles a STALLED from a sender.
    pub(super) fn stalled(&mut self, src: u32, origin: u32, number: u32, allowed: u64) -> Result<(), EndpointError> {
        if !self.credits.has_stalled(src, allowed) || self.give(src)? {
            return Ok(());
        }
        let ranks = self.members.topology().size() as u32;
        if src >= ranks {
            // Ranks of other jobs have unrelated numbers, so only a cycle of two is detected.
            return if self.out.holds_for(src) { self.give_more(src, Duration::ZERO, CIRCLE) } else { Ok(()) };
        }
        if origin == self.members.rank() {
            return if self.out.held > 0 { self.give_more(src, Duration::ZERO, CIRCLE) } else { Ok(()) };
        }
        // The origin must be a rank of this job; each STALLED is passed on once.
        if origin < ranks {
            self.out.pass_on(origin, number)?;
        }
        Ok(())
    }

    /// After a poll that found nothing: sends credit for what was consumed meanwhile to stalled senders, and reports
    /// the other stalled senders to the caller.
    #[inline]
    pub(super) fn serve_stalled(&mut self) -> Result<(), EndpointError> {
        if self.credits.stalled == 0 || self.fruitless % ASK_EVERY != 0 {
            return Ok(());
        }
        let waiting: Vec<u32> = self.credits.waiting().collect();
        for src in waiting {
            if !self.give(src)? {
                self.offers.events.push_back(Event::Stalled { src });
            }
        }
        Ok(())
    }

    /// Lifts all limits, because this rank posts no more receives: peers may send it everything they hold, so that
    /// they can leave, too.
    pub fn leave(&mut self) -> Result<(), EndpointError> {
        self.credits.leaving = true;
        let waiting: Vec<u32> = self.credits.waiting().collect();
        waiting.into_iter().try_for_each(|src| self.give(src).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_equal_but_never_too_small() {
        assert_eq!(Tariff::new(Some(64 << 20), 5).share, 16 << 20);
        assert_eq!(Tariff::new(Some(1 << 20), 100).share, SHARE_MIN);
        assert_eq!(Tariff::new(Some(1 << 20), 1).share, 1 << 20);
        let all = Tariff { handlers: 1 << 3, ..Tariff::new(None, 4) };
        assert_eq!((all.cost(3, 10), all.cost(2, 10), all.cost(0, 0)), (KEEPING + 10, 0, 0));
    }

    #[test]
    fn a_sender_is_told_only_what_is_news() {
        let mut credits = Credits::new(1000, 3);
        assert_eq!(credits.credit(1), None);
        credits.accounts[1].consumed = 400;
        assert_eq!(credits.credit(1), Some(1400));
        assert_eq!(credits.credit(1), None);
        // No sender is stalled, so none may exceed its share.
        assert_eq!(credits.exceed(1, Duration::ZERO), None);
        assert!(credits.has_stalled(1, 1400) && credits.has_stalled(1, 1400));
        assert_eq!(credits.exceed(1, Duration::from_secs(60)), None);
        assert_eq!((credits.exceed(1, Duration::ZERO), credits.stalled), (Some(1650), 0));
        // A grant beyond the share is not granted again when messages are consumed.
        credits.accounts[1].consumed = 600;
        assert_eq!(credits.credit(1), None);
        credits.accounts[1].consumed = 700;
        assert_eq!(credits.credit(1), Some(1700));
        // A higher limit is already under way.
        assert!(!credits.has_stalled(1, 1650));
        assert_eq!(credits.stalled, 0);
        credits.leaving = true;
        // The sender may assume another share, and no CREDIT is under way.
        assert!(credits.has_stalled(2, 500));
        assert!(credits.credit(2) > Some(u64::MAX / 4) && credits.stalled == 0);
    }
}
