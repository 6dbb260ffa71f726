//! The time at which another way for outgoing writes is tried.
//!
//! If only the own writes are lost, the neighbour's arrive, and this host changes its way at once. If nothing arrives, the
//! cause is at the neighbour, or at both ends: then this host waits longer than a neighbour whose own writes alone are
//! lost, and for a random time, so that both ends do not change for ever at the same time.

use crate::link::SetupError;
use std::time::Duration;

/// Shortest wait while nothing arrives: the neighbour changes its way sooner if it alone is the cause.
const WAIT: Duration = Duration::from_millis(500);
/// Bound of the random part of the wait, milliseconds.
const RANDOM: u64 = 1000;
/// Attempts without any wait between them; after these each waits a second longer than the one before.
const QUICK: u32 = 4;
const SLOWEST: u32 = 60;

/// The attempts of one adapter since its link was up.
#[derive(Default)]
pub(crate) struct Retry {
    due: Option<Duration>,
    attempts: u32,
}

impl Retry {
    /// Returns true if another way has to be tried at the time `now`, in a bring-up that has this problem. `seed` is a
    /// random number.
    pub fn is_due(&mut self, problem: Option<SetupError>, now: Duration, seed: u64) -> bool {
        let wait = match problem {
            Some(SetupError::NothingIsConfirmed) => Duration::ZERO,
            Some(SetupError::NothingArrives) => WAIT + Duration::from_millis(seed % RANDOM),
            _ => {
                self.due = None;
                return false;
            }
        };
        let slower = Duration::from_secs(self.attempts.saturating_sub(QUICK).min(SLOWEST).into());
        let is_due = now >= *self.due.get_or_insert(now + wait + slower);
        if is_due {
            *self = Retry { due: None, attempts: self.attempts + 1 };
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_that_knows_that_its_own_writes_are_lost_is_first_and_attempts_become_rare() {
        let (mut retry, now) = (Retry::default(), Duration::from_secs(5));
        assert!(!retry.is_due(None, now, 0));
        assert!(!retry.is_due(Some(SetupError::NothingArrives), now, 999));
        assert!(!retry.is_due(Some(SetupError::NothingArrives), now + WAIT, 0), "the first number counts");
        assert!(retry.is_due(Some(SetupError::NothingArrives), now + Duration::from_millis(1499), 0));
        assert!(retry.is_due(Some(SetupError::NothingIsConfirmed), now, 7));
        let attempts = (0..600_000).filter(|&millis| {
            retry.is_due(Some(SetupError::NothingIsConfirmed), now + Duration::from_millis(millis), 0)
        });
        assert!(attempts.count() < 40);
    }
}
