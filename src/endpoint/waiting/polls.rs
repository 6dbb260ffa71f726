//! The choice of the work that each poll does: cold lanes, transit traffic, and the rare checks of a rank that polls in
//! vain.

/// While polls are frequent, one of this number is thorough: it looks at everything, that is at cold lanes, transit traffic
/// and failures, too. To do so at each poll pays neither for a rank that spins nor for one that yields: after a switch of
/// processes, memory is slow to access.
const THOROUGH_EVERY: u32 = 8;

/// Fruitless polls that each also check for transit traffic, after some has been forwarded, while the rank spins.
const RELAY_HEAT: u32 = 1 << 14;

/// A look for transit traffic by a rank that yields counts as this number of looks, because polls between yields take longer.
const POLLS_OF_YIELD: u32 = 1 << 6;

/// Least number of fruitless polls between two checks for dead processes, for callers that never wait.
const GLANCE_EVERY: u32 = 1 << 9;

/// Least number of fruitless polls between two checks whether their caller waits or only tests.
pub const TESTS: u32 = 1 << 4;

/// Least number of fruitless polls between two reports of stalled senders to the caller.
const ASK_EVERY: u32 = 1 << 4;

/// The polls of a rank so far.
#[derive(Default)]
pub struct Polls {
    /// True if polls cannot take the fast path: links are not trusted, or kept arrivals wait for the rank.
    pub odd: bool,
    /// Number of polls.
    looks: u32,
    /// Polls that found nothing, and their number when each check was last due.
    fruitless: u32,
    stalled_at: u32,
    tested_at: u32,
    glanced_at: u32,
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

    /// Counts a poll. Returns true if it is to be thorough. `rare`: polls may be rare.
    #[inline(always)]
    pub fn begin(&mut self, rare: bool) -> bool {
        self.looks = self.looks.wrapping_add(1);
        self.looks.is_multiple_of(THOROUGH_EVERY) || rare
    }

    /// True if each poll must look for transit traffic.
    #[inline(always)]
    pub fn is_relaying(&self) -> bool {
        self.relay_heat > 0
    }

    /// Records that a poll has looked for transit traffic. `any`: there was some; `yields`: the rank yields between polls.
    #[inline]
    pub fn has_looked_for_transit(&mut self, any: bool, yields: bool) {
        if any {
            self.relay_heat = RELAY_HEAT;
        }
        self.relay_heat = self.relay_heat.saturating_sub(if yields { POLLS_OF_YIELD } else { 1 });
    }

    /// Records a fruitless poll.
    #[inline(always)]
    pub fn found_nothing(&mut self) {
        self.fruitless = self.fruitless.wrapping_add(1);
    }

    /// Returns the checks that are due.
    #[inline]
    pub fn due(&mut self) -> Due {
        let fruitless = self.fruitless;
        let is_due = |at: &mut u32, every| {
            let is_due = fruitless.wrapping_sub(*at) >= every;
            *at = if is_due { fruitless } else { *at };
            is_due
        };
        Due {
            stalled: is_due(&mut self.stalled_at, ASK_EVERY),
            tested: is_due(&mut self.tested_at, TESTS),
            glance: is_due(&mut self.glanced_at, GLANCE_EVERY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_polls_are_thorough_while_they_are_frequent() {
        let mut polls = Polls::default();
        assert_eq!((0..THOROUGH_EVERY * 10).filter(|_| polls.begin(false)).count(), 10);
        assert!((0..THOROUGH_EVERY).all(|_| polls.begin(true)));
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
    fn checks_are_due_once_in_so_many_fruitless_polls() {
        // Whether each poll asks what is due, or only the thorough ones.
        for asks in [1, THOROUGH_EVERY] {
            let mut polls = Polls::default();
            let mut due = Vec::new();
            for i in 1..=GLANCE_EVERY {
                polls.found_nothing();
                due.extend(i.is_multiple_of(asks).then(|| polls.due()));
            }
            let count = |is: fn(&Due) -> bool| due.iter().filter(|due| is(due)).count() as u32;
            assert_eq!(count(|due| due.stalled), GLANCE_EVERY / ASK_EVERY);
            assert_eq!((count(|due| due.tested), count(|due| due.glance)), (GLANCE_EVERY / TESTS, 1));
        }
    }
}
