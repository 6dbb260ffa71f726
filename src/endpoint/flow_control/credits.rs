//! The credit of all senders at a receiver: the limit that a sender was last sent, and the limit that it may be sent
//! next.

use crate::error::EndpointError;
use smallvec::SmallVec;
use std::time::{Duration, Instant};

/// Time that a receiver with a wildcard receive lets a sender stall before it grants more than the share.
const STALL_MAX: Duration = Duration::from_millis(10);

/// Reasons for which a sender may exceed its share, for the log.
const AWAITED: &str = "a receive waits for a later one";
const CYCLE: &str = "ranks send to each other and none of them receives";

/// Senders, each with the new limit that it must be sent.
pub type Grants = SmallVec<[(u32, u64); 4]>;

/// The answer of a receiver to a STALLED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// No answer: a higher limit is under way, or the sender has to wait.
    Nothing,
    /// The sender gets this new limit.
    Credit(u64),
    /// The STALLED is passed on to the receivers for whose credit this rank waits itself.
    PassOn,
}

/// The account of one sender at this receiver.
#[derive(Clone, Debug)]
struct SenderCredit {
    /// Bytes of charged messages that are no longer kept.
    consumed: u64,
    /// Limit of charged bytes, as last sent to the sender.
    allowed: u64,
    /// True after the first CREDIT; until then the sender may assume another share.
    credit_sent: bool,
    /// Time since which the sender has been stalled.
    stalled: Option<Instant>,
}

/// The accounts of all senders at this receiver.
pub struct Credits {
    accounts: Vec<SenderCredit>,
    /// This rank.
    me: u32,
    /// Number of ranks of the job; peers from this number on are in other jobs.
    ranks: u32,
    share: u64,
    /// Number of stalled senders.
    stalled: usize,
    /// True once the user was warned that more is kept than NTBRING_UNEXPECTED allows.
    warned: bool,
    /// True once this rank posts no more receives.
    leaving: bool,
}

impl Credits {
    pub fn new(share: u64, me: u32, ranks: usize) -> Credits {
        let (accounts, count) = (Vec::new(), ranks as u32);
        let mut credits = Credits { accounts, me, ranks: count, share, stalled: 0, warned: false, leaving: false };
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

    fn new_account(&self) -> SenderCredit {
        SenderCredit { consumed: 0, allowed: self.share, credit_sent: false, stalled: None }
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
            (account.allowed, account.credit_sent) = (allowed, true);
            self.stalled -= usize::from(account.stalled.take().is_some());
            allowed
        })
    }

    /// Returns a new limit beyond the share if the sender has been stalled for at least `stalled_for`; `why` is the
    /// reason for the log.
    fn exceed(&mut self, src: u32, stalled_for: Duration, now: Instant, why: &str) -> Option<u64> {
        let step = self.step();
        let account = &mut self.accounts[src as usize];
        account.stalled.filter(|since| now.saturating_duration_since(*since) >= stalled_for)?;
        account.stalled = None;
        account.allowed = account.allowed.saturating_add(step);
        account.credit_sent = true;
        let allowed = account.allowed;
        self.stalled -= 1;
        if !std::mem::replace(&mut self.warned, true) {
            log::warn!(
                "rank {}: more unexpected messages of rank {src} are kept than NTBRING_UNEXPECTED allows: {why}",
                self.me
            );
        }
        Some(allowed)
    }

    /// Records that a message of cost `cost` is no longer kept. Returns the new limit that its sender must be sent, if
    /// one is due.
    #[inline]
    pub fn discharge(&mut self, src: u32, cost: u64) -> Result<Option<u64>, EndpointError> {
        let step = self.step();
        let Some(account) = self.accounts.get_mut(src as usize) else {
            return Err(EndpointError::Argument(format!("there is no peer {src} whose message could be consumed")));
        };
        // A damaged header may claim any cost.
        account.consumed = account.consumed.saturating_add(cost);
        let is_due = account.consumed.saturating_add(self.share - step) >= account.allowed;
        Ok(if is_due { self.credit(src) } else { None })
    }

    /// Returns the grants of stalled senders when the caller waits for a message that one of them may hold; `src` None
    /// means any sender. With `delayed`, only a sender that has been stalled for a while gets more than its share.
    pub fn allow_more(&mut self, src: Option<u32>, delayed: bool, now: Instant) -> Grants {
        if self.stalled == 0 {
            return Grants::new();
        }
        let stalled_for = if delayed { STALL_MAX } else { Duration::ZERO };
        let wanted: SmallVec<[u32; 4]> = self.waiting().filter(|&s| src.is_none_or(|src| src == s)).collect();
        let grant = |src| Some((src, self.credit(src).or_else(|| self.exceed(src, stalled_for, now, AWAITED))?));
        wanted.into_iter().filter_map(grant).collect()
    }

    /// Handles a STALLED of a sender at limit `allowed`, which began at rank `origin`. `holds_for_src`: this rank
    /// itself waits for credit of that sender; `holds`: of any receiver.
    pub fn has_stalled(
        &mut self,
        src: u32,
        origin: u32,
        allowed: u64,
        (holds_for_src, holds): (bool, bool),
        now: Instant,
    ) -> Answer {
        if !self.stall(src, allowed, now) {
            return Answer::Nothing;
        }
        // Ranks of other jobs have unrelated numbers, so only a cycle of two is detected.
        let is_external_peer = src >= self.ranks;
        let is_cycle = if is_external_peer { holds_for_src } else { origin == self.me && holds };
        match self.credit(src) {
            Some(allowed) => Answer::Credit(allowed),
            None if is_cycle => self.exceed(src, Duration::ZERO, now, CYCLE).map_or(Answer::Nothing, Answer::Credit),
            // The origin must be a rank of this job; each STALLED is passed on once.
            None if !is_external_peer && origin != self.me && origin < self.ranks => Answer::PassOn,
            None => Answer::Nothing,
        }
    }

    /// Records that a sender stalled at limit `allowed`. Returns false if a higher limit is already under way to it.
    fn stall(&mut self, src: u32, allowed: u64, now: Instant) -> bool {
        let account = &mut self.accounts[src as usize];
        if account.credit_sent && allowed < account.allowed {
            return false;
        }
        if account.stalled.replace(now).is_none() {
            self.stalled += 1;
        }
        true
    }

    /// True if any sender is stalled.
    #[inline]
    pub fn any_stalled(&self) -> bool {
        self.stalled > 0
    }

    /// Returns the stalled senders: each with its new limit, if messages of it were consumed meanwhile.
    pub fn review(&mut self) -> SmallVec<[(u32, Option<u64>); 4]> {
        let waiting: SmallVec<[u32; 4]> = self.waiting().collect();
        waiting.into_iter().map(|src| (src, self.credit(src))).collect()
    }

    /// Lifts all limits, because this rank posts no more receives: peers may send it everything they hold, so that
    /// they can leave, too. Returns the new limits.
    pub fn leave(&mut self) -> Grants {
        self.leaving = true;
        self.review().into_iter().filter_map(|(src, allowed)| Some((src, allowed?))).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: u64 = 1000;

    fn credits() -> Credits {
        Credits::new(WHOLE, 0, 3)
    }

    #[test]
    fn a_sender_is_told_only_what_is_news() {
        let (mut credits, start) = (credits(), Instant::now());
        let later = start + Duration::from_secs(1);
        assert_eq!(credits.credit(1), None);
        credits.accounts[1].consumed = 400;
        assert_eq!(credits.credit(1), Some(1400));
        assert_eq!(credits.credit(1), None);
        // No sender is stalled, so none may exceed its share.
        assert_eq!(credits.exceed(1, Duration::ZERO, later, AWAITED), None);
        assert!(credits.stall(1, 1400, start) && credits.stall(1, 1400, start));
        assert_eq!(credits.exceed(1, Duration::from_secs(60), later, AWAITED), None);
        assert_eq!((credits.exceed(1, Duration::ZERO, later, AWAITED), credits.stalled), (Some(1650), 0));
        // A grant beyond the share is not granted again when messages are consumed.
        credits.accounts[1].consumed = 600;
        assert_eq!(credits.credit(1), None);
        credits.accounts[1].consumed = 700;
        assert_eq!(credits.credit(1), Some(1700));
        // A higher limit is already under way.
        assert!(!credits.stall(1, 1650, later));
        assert_eq!(credits.stalled, 0);
        credits.leaving = true;
        // The sender may assume another share, and no CREDIT is under way.
        assert!(credits.stall(2, 500, later));
        assert!(credits.credit(2) > Some(u64::MAX / 4) && credits.stalled == 0);
    }

    #[test]
    fn limits_rise_once_per_quarter_of_a_share() {
        let mut credits = credits();
        let limits: Vec<_> = (0..5).map(|_| credits.discharge(2, 100).unwrap()).collect();
        assert_eq!(limits, [None, None, Some(1300), None, None]);
        assert_eq!(credits.discharge(2, u64::MAX).unwrap(), Some(u64::MAX));
        assert!(credits.discharge(3, 1).is_err());
    }

    #[test]
    fn a_stalled_sender_gets_more_if_a_receive_waits_for_it() {
        let (mut credits, start) = (credits(), Instant::now());
        for src in [1, 2] {
            assert_eq!(credits.has_stalled(src, src, WHOLE, (false, false), start), Answer::PassOn);
        }
        assert_eq!(credits.review().as_slice(), [(1, None), (2, None)]);
        // A wildcard receive lets both stall for a while.
        assert!(credits.allow_more(None, true, start).is_empty());
        assert_eq!(credits.allow_more(Some(2), false, start).as_slice(), [(2, 1250)]);
        assert_eq!(credits.allow_more(None, true, start + STALL_MAX).as_slice(), [(1, 1250)]);
        assert!(!credits.any_stalled());
        credits.lose(1);
        assert!(!credits.any_stalled());
    }

    #[test]
    fn a_cycle_of_stalled_ranks_is_broken_by_its_origin_alone() {
        let (mut credits, now) = (credits(), Instant::now());
        assert_eq!(credits.has_stalled(1, 2, WHOLE, (true, true), now), Answer::PassOn);
        assert_eq!(credits.has_stalled(1, 0, WHOLE, (false, true), now), Answer::Credit(1250));
        // This rank waits for no receiver any more, so what has come back to it was no cycle.
        assert_eq!(credits.has_stalled(1, 0, 1250, (false, false), now), Answer::Nothing);
        // A sender of another job, whose numbers mean nothing here.
        credits.admit(7);
        assert_eq!(credits.has_stalled(7, 0, WHOLE, (false, true), now), Answer::Nothing);
        assert_eq!(credits.has_stalled(7, 5, WHOLE, (true, true), now), Answer::Credit(1250));
        // A rank that leaves lets all send.
        assert_eq!(credits.leave().iter().map(|grant| grant.0).collect::<Vec<_>>(), [1]);
    }
}
