//! The choice of the work that each poll does: cold lanes, transit traffic, and the rare checks of a rank that polls in
//! vain.

/// While a rank spins, one of this number of polls looks at everything: cold lanes, transit traffic, failures.
const THOROUGH_EVERY: u32 = 8;

/// Fruitless polls that each also check for transit traffic, after some has been forwarded, while the rank spins.
const RELAY_HEAT: u32 = 1 << 14;

/// Number of polls of a rank that spins for which one counts of a rank that yields: it takes so much longer.
const POLLS_OF_YIELD: u32 = 1 << 6;

/// One of this number of fruitless polls looks for transit traffic, while there was none recently.
const TRANSIT_EVERY: u32 = 4;

/// Thorough fruitless polls between two checks for dead processes, for callers that never wait.
const GLANCE_EVERY: u32 = 1 << 6;

/// Fruitless polls between two checks if their caller waits or only tests.
pub const TESTS: u32 = 1 << 4;

/// Number of fruitless polls between two reports of stalled senders to the caller.
const ASK_EVERY: u32 = 16;

/// The polls of a rank so far.
#[derive(Default)]
pub struct Polls {
    /// True if polls cannot take the fast path: links are not trusted, or kept arrivals wait for the rank.
    pub odd: bool,
    /// Polls that took the fast path.
    looks: u32,
    /// Polls that found nothing.
    fruitless: u32,
    /// Number of further polls that each look for transit traffic, because there was some recently.
    relay_heat: u32,
}

/// Checks that are due after a fruitless poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Stalled senders are looked at.
    pub stalled: bool,
    /// [`super::Idle::tested`] is called for [`TESTS`] polls.
    pub tested: bool,
    /// [`super::Idle::glance`] is called.
    pub glance: bool,
}

impl Polls {
    /// Creates the state of a rank before its first poll; `odd` is true if polls cannot take the fast path.
    pub fn new(odd: bool) -> Polls {
        Polls { odd, ..Polls::default() }
    }

    /// Begins a poll on the fast path. Returns true if it is a thorough one, which includes cold lanes. A rank that
    /// spins polls so often that cold lanes can wait; one that yields or sleeps has the time to look at them.
    #[inline(always)]
    pub fn begin(&mut self, is_spinning: impl FnOnce() -> bool) -> bool {
        self.looks = self.looks.wrapping_add(1);
        self.looks.is_multiple_of(THOROUGH_EVERY) || !is_spinning()
    }

    /// True if each poll must look for transit traffic.
    #[inline(always)]
    pub fn is_relaying(&self) -> bool {
        self.relay_heat > 0
    }

    /// True if a fruitless poll must look for transit traffic. `last`: the rank may sleep after this poll.
    #[inline]
    pub fn is_transit_due(&self, last: bool) -> bool {
        self.is_relaying() || last || self.fruitless.is_multiple_of(TRANSIT_EVERY)
    }

    /// Records that a poll has looked for transit traffic. `any`: there was some; `yields`: the rank yields between polls.
    #[inline]
    pub fn has_looked_for_transit(&mut self, any: bool, yields: bool) {
        if any {
            self.relay_heat = RELAY_HEAT;
        }
        self.relay_heat = self.relay_heat.saturating_sub(if yields { POLLS_OF_YIELD } else { 1 });
    }

    /// Records a fruitless poll. Returns the checks that are due.
    #[inline]
    pub fn found_nothing(&mut self) -> Due {
        self.fruitless = self.fruitless.wrapping_add(1);
        let every = |n| self.fruitless.is_multiple_of(n);
        Due { stalled: every(ASK_EVERY), tested: every(TESTS), glance: every(GLANCE_EVERY) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_that_spins_seldom_looks_at_cold_lanes() {
        let mut polls = Polls::default();
        let thorough = (0..THOROUGH_EVERY * 10).filter(|_| polls.begin(|| true)).count();
        assert_eq!(thorough, 10);
        assert!((0..THOROUGH_EVERY).all(|_| polls.begin(|| false)));
    }

    #[test]
    fn polls_look_for_transit_for_a_while_after_there_was_some() {
        for (yields, heat) in [(false, RELAY_HEAT), (true, RELAY_HEAT / POLLS_OF_YIELD)] {
            let mut polls = Polls::default();
            polls.has_looked_for_transit(false, yields);
            assert!(!polls.is_relaying());
            polls.has_looked_for_transit(true, yields);
            let more = (0..).take_while(|_| {
                polls.has_looked_for_transit(false, yields);
                polls.is_relaying()
            });
            assert_eq!(more.count() as u32, heat - 2);
        }
    }

    #[test]
    fn few_fruitless_polls_look_for_transit_while_there_is_none() {
        let mut polls = Polls::default();
        let mut due = |last| {
            polls.found_nothing();
            polls.is_transit_due(last)
        };
        assert_eq!((0..TRANSIT_EVERY * 10).filter(|_| due(false)).count(), 10);
        // A rank that may sleep afterwards looks in any case, and so does one that has just forwarded something.
        assert!((0..TRANSIT_EVERY).all(|_| due(true)));
        polls.has_looked_for_transit(true, true);
        assert!((0..TRANSIT_EVERY).all(|_| polls.is_transit_due(false)));
    }

    #[test]
    fn checks_are_due_once_in_so_many_fruitless_polls() {
        let mut polls = Polls::default();
        let due: Vec<Due> = (0..GLANCE_EVERY).map(|_| polls.found_nothing()).collect();
        let count = |is: fn(&Due) -> bool| due.iter().filter(|due| is(due)).count() as u32;
        assert_eq!(count(|due| due.stalled), GLANCE_EVERY / ASK_EVERY);
        assert_eq!((count(|due| due.tested), count(|due| due.glance)), (GLANCE_EVERY / TESTS, 1));
    }
}
