//! Flow control: how much may lie at a receiver that has not asked for it.
//!
//! ```text
//!   sender                                          receiver
//!   |                                                 |
//!   | charged += cost ------------ message ---------> |  matched at once, or kept until somebody asks
//!   |                                                 |  consumed += cost, in either case in the end
//!   | <- CREDIT allowed = consumed + share ---------- |  once per quarter of a share
//!   |                                                 |
//!   | charged + cost > allowed: held                  |
//!   | ---------------------------- STALLED ---------> |  what was consumed is credited at once; if nothing was,
//!   |                                                 |  and somebody waits for this sender: more than the share
//! ```
//!
//! A STALLED that has crossed a CREDIT is answered by it: whoever holds something when it has heard of that says so again.
//!
//! Only messages that are matched are charged. Answers, acknowledgements and one-sided operations never wait
//! for credit, and pass messages that do.
//!
//! Ranks that all send and hold for each other, none of them receiving, would wait for ever. So STALLED names the rank
//! that it began at (`origin`), and whoever is stalled too passes it on to those it waits for; when it comes back to
//! its origin there is a circle, and the origin gives more than the share. Whoever stalls again says so anew, with the
//! next number, since those that the last one found may not have been stalled then.

use super::wire::Packet;
use super::{Endpoint, EndpointError, Event};
use std::time::{Duration, Instant};

/// What a message costs beside its payload: about what MPICH needs for one that it keeps.
const KEEPING: u64 = 2048;

/// The least share of one sender: more than a message that is sent without asking can cost, several times.
const SHARE_MIN: u64 = 512 << 10;

/// How long a receiver that waits for anybody lets one sender wait before it takes more than its share.
const PATIENCE: Duration = Duration::from_millis(10);

/// Why a sender may exceed its share.
const AWAITED: &str = "a receive waits for one that comes behind them";
const CIRCLE: &str = "ranks send to each other and none of them receives";

/// Fruitless polls from one question whether a stalled sender is waited for to the next.
const ASK_EVERY: u32 = 16;

/// Which messages are charged, and how much one sender may have at a receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tariff {
    /// A bit for each handler.
    handlers: u64,
    /// Bytes.
    pub share: u64,
}

impl Tariff {
    /// `total` bytes for all of a job's ranks but one; None: as many as there is memory.
    pub fn new(total: Option<u64>, ranks: usize) -> Tariff {
        let senders = ranks.saturating_sub(1).max(1) as u64;
        let share = total.map_or(u64::MAX / 4, |total| (total / senders).max(SHARE_MIN));
        Tariff { handlers: 0, share }
    }

    /// What a message with so many bytes of payload costs; 0 if it is not charged.
    #[inline(always)]
    pub fn cost(&self, handler: u16, payload: u64) -> u64 {
        if self.handlers >> (handler & 63) & 1 == 0 {
            0
        } else {
            KEEPING + payload
        }
    }
}

/// What one sender may have here.
#[derive(Clone, Debug)]
struct Account {
    /// Of all that was charged: what is not kept any more.
    consumed: u64,
    /// As the sender knows it.
    allowed: u64,
    /// Whether it was told by a CREDIT; until then it may think that its share is another.
    told: bool,
    /// Since when it waits for credit.
    stalled: Option<Instant>,
}

/// What all senders may have here.
pub(super) struct Credits {
    accounts: Vec<Account>,
    share: u64,
    /// Senders that wait.
    stalled: usize,
    /// The user knows that it is more than was set.
    warned: bool,
    /// This rank will not ask for anything any more.
    leaving: bool,
}

impl Credits {
    pub fn new(share: u64, ranks: usize) -> Credits {
        let mut credits = Credits { accounts: Vec::new(), share, stalled: 0, warned: false, leaving: false };
        credits.admit(ranks.saturating_sub(1));
        credits
    }

    /// Makes room for peers up to this number.
    pub fn admit(&mut self, peer: usize) {
        if self.accounts.len() <= peer {
            self.accounts.resize(peer + 1, self.new_account());
        }
    }

    /// Gives a peer's account to another that has its number now.
    pub fn renew(&mut self, peer: u32) {
        self.accounts[peer as usize] = self.new_account();
    }

    fn new_account(&self) -> Account {
        Account { consumed: 0, allowed: self.share, told: false, stalled: None }
    }

    /// A quarter of a share.
    fn step(&self) -> u64 {
        self.share / 4
    }

    /// What the sender has to be told, if it may send more than it knows.
    fn credit(&mut self, src: u32) -> Option<u64> {
        let account = &mut self.accounts[src as usize];
        let allowed = if self.leaving { u64::MAX / 2 } else { account.consumed.saturating_add(self.share) };
        (allowed > account.allowed).then(|| {
            (account.allowed, account.told) = (allowed, true);
            self.stalled -= usize::from(account.stalled.take().is_some());
            allowed
        })
    }

    /// The same if the sender waits, and may exceed its share.
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

    /// A sender waits that has heard of this credit. False if there is a later one on its way.
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

    /// A sender does not wait any more, since it is lost.
    pub fn lose(&mut self, src: u32) {
        self.stalled -= usize::from(self.accounts[src as usize].stalled.take().is_some());
    }

    fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.accounts.len() as u32).filter(|&src| self.accounts[src as usize].stalled.is_some())
    }

    /// Lines on every sender that waits.
    pub fn describe(&self) -> Vec<String> {
        let line = |src: u32| {
            let a = &self.accounts[src as usize];
            format!("rank {src} holds messages: it may have {} bytes here, and {} were consumed", a.allowed, a.consumed)
        };
        self.waiting().map(line).collect()
    }
}

impl Endpoint {
    /// Tells which handlers' messages may have to be kept until somebody asks for them: a bit each. To be called before
    /// anything is sent, in all ranks alike.
    pub fn charge(&mut self, handlers: u64) {
        self.out.tariff.handlers = handlers;
    }

    /// What a message that has arrived cost its sender.
    #[inline(always)]
    pub fn cost(&self, handler: u16, payload: u64) -> u64 {
        self.out.tariff.cost(handler, payload)
    }

    /// A message that cost so much is not kept any more.
    #[inline]
    pub fn discharge(&mut self, src: u32, cost: u64) -> Result<(), EndpointError> {
        let step = self.credits.step();
        let Some(account) = self.credits.accounts.get_mut(src as usize) else {
            return Err(EndpointError::Argument(format!("there is no peer {src} whose message could be consumed")));
        };
        // What a damaged header claims may be anything.
        account.consumed = account.consumed.saturating_add(cost);
        if account.consumed.saturating_add(self.credits.share - step) >= account.allowed {
            self.give(src)?;
        }
        Ok(())
    }

    /// Tells a sender how much it may send by now; false if that is no news.
    fn give(&mut self, src: u32) -> Result<bool, EndpointError> {
        let Some(allowed) = self.credits.credit(src) else { return Ok(false) };
        self.out.send_bare(src, Packet::Credit { allowed }, &[])?;
        Ok(true)
    }

    /// Somebody waits for what this sender may hold, or any sender if it is None, and it is not here. If the sender is stalled
    /// it may have more here than its share; `patient`: only if it has been so for a while.
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

    /// A sender waits for credit.
    pub(super) fn stalled(&mut self, src: u32, origin: u32, number: u32, allowed: u64) -> Result<(), EndpointError> {
        if !self.credits.has_stalled(src, allowed) || self.give(src)? {
            return Ok(());
        }
        let ranks = self.members.topology().size() as u32;
        if src >= ranks {
            // Numbers of ranks mean nothing across jobs: only the smallest circle is seen.
            return if self.out.holds_for(src) { self.give_more(src, Duration::ZERO, CIRCLE) } else { Ok(()) };
        }
        if origin == self.members.rank() {
            return if self.out.held > 0 { self.give_more(src, Duration::ZERO, CIRCLE) } else { Ok(()) };
        }
        // Nobody else can be one; each is passed on once.
        if origin < ranks {
            self.out.pass_on(origin, number)?;
        }
        Ok(())
    }

    /// Of a poll that found nothing: what has been consumed meanwhile goes to those who wait for it, and about the others
    /// the caller is asked.
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

    /// Nothing will be asked for any more: whoever has something for this rank may send it, so that it can leave too.
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
        // Nobody waits: nothing is exceeded.
        assert_eq!(credits.exceed(1, Duration::ZERO), None);
        assert!(credits.has_stalled(1, 1400) && credits.has_stalled(1, 1400));
        assert_eq!(credits.exceed(1, Duration::from_secs(60)), None);
        assert_eq!((credits.exceed(1, Duration::ZERO), credits.stalled), (Some(1650), 0));
        // What was given beyond the share is not given again when it is consumed.
        credits.accounts[1].consumed = 600;
        assert_eq!(credits.credit(1), None);
        credits.accounts[1].consumed = 700;
        assert_eq!(credits.credit(1), Some(1700));
        // Credit is on its way to it.
        assert!(!credits.has_stalled(1, 1650));
        assert_eq!(credits.stalled, 0);
        credits.leaving = true;
        // It may have another share than this rank thinks, and nothing is on its way.
        assert!(credits.has_stalled(2, 500));
        assert!(credits.credit(2) > Some(u64::MAX / 4) && credits.stalled == 0);
    }
}
