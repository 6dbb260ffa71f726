//! The receive timeout, for tests with injected faults.
//!
//! Data lost on a link is retransmitted only with NTBRING_RELIABILITY=retry, and only if there is a route; a rank
//! that waits for it might wait for ever. Where faults are injected, a rank that waits and makes no progress for a
//! long time fails with an error, after it has written its state to stderr. Without injected faults it waits as long
//! as MPI does.

use super::{Endpoint, EndpointError};
use std::time::{Duration, Instant};

/// The timeout's state.
pub(super) struct Patience {
    limit: Duration,
    /// The progress count at its last change, and the time of that change.
    mark: u64,
    since: Instant,
    /// Time of the last fruitless poll.
    waited: Instant,
    over: bool,
}

impl Patience {
    pub fn new(limit: Duration, now: Instant) -> Patience {
        Patience { limit, mark: 0, since: now, waited: now, over: false }
    }

    /// Records a fruitless poll at `now`; `mark` counts progress. Returns true if the timeout has expired.
    fn is_over(&mut self, mark: u64, now: Instant) -> bool {
        // A rank that computed since the last poll has not waited.
        let away = now.duration_since(self.waited) > self.limit / 2;
        self.waited = now;
        if mark != self.mark || away {
            (self.mark, self.since) = (mark, now);
        }
        now.duration_since(self.since) >= self.limit
    }
}

impl Endpoint {
    /// Checks the timeout. To be called after a poll that found nothing to do.
    #[cold]
    pub(super) fn check_patience(&mut self) -> Result<(), EndpointError> {
        let mark = self.inbound.msgs
            + self.inbound.bytes
            + self.inbound.head_updates
            + self.out.doorbells
            + self.groups.begun
            + self.groups.doorbells;
        let Some(patience) = &mut self.patience else { return Ok(()) };
        if !patience.is_over(mark, Instant::now()) {
            return Ok(());
        }
        let (after, first) = (patience.limit, !std::mem::replace(&mut patience.over, true));
        if first {
            self.describe_to_stderr();
        }
        let injected = self.members.injector().map(|injector| injector.injected().to_string()).unwrap_or_default();
        Err(EndpointError::Stuck { rank: self.members.rank(), after, injected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_in_vain_gives_up_and_who_computes_or_gets_on_does_not() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut patience = Patience::new(Duration::from_secs(10), start);
        assert!((0..10).all(|s| !patience.is_over(0, at(s))));
        assert!(patience.is_over(0, at(10)) && patience.is_over(0, at(11)));
        // There is progress.
        assert!((12..22).all(|s| !patience.is_over(1, at(s))));
        assert!(patience.is_over(1, at(22)));
        // The rank was away meanwhile.
        assert!(!patience.is_over(1, at(100)) && !patience.is_over(1, at(105)));
        assert!(patience.is_over(1, at(110)));
    }
}
