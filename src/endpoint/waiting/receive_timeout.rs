//! The receive timeout, for tests with injected faults.
//!
//! Data lost on a link is retransmitted only with NTBRING_RELIABILITY=retry, and only if there is a route; a rank
//! that waits for it might wait for ever. Where faults are injected, a rank that waits and makes no progress for a
//! long time fails with an error, after it has written its state to stderr. Without injected faults it waits as long
//! as MPI does.

use std::time::{Duration, Instant};

/// The timeout's state.
pub struct ReceiveTimeout {
    limit: Duration,
    /// The progress count at its last change, and the time of that change.
    mark: u64,
    since: Instant,
    /// Time of the last fruitless poll.
    waited: Instant,
    over: bool,
}

impl ReceiveTimeout {
    pub fn new(limit: Duration, now: Instant) -> ReceiveTimeout {
        ReceiveTimeout { limit, mark: 0, since: now, waited: now, over: false }
    }

    /// Returns the timeout.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns true at the first call, when the state of the rank must be written.
    pub fn is_first(&mut self) -> bool {
        !std::mem::replace(&mut self.over, true)
    }

    /// Records a fruitless poll at `now`; `mark` counts progress. Returns true if the timeout has expired.
    pub fn is_over(&mut self, mark: u64, now: Instant) -> bool {
        // A rank that computed since the last poll has not waited.
        let away = now.duration_since(self.waited) > self.limit / 2;
        self.waited = now;
        if mark != self.mark || away {
            (self.mark, self.since) = (mark, now);
        }
        now.duration_since(self.since) >= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_in_vain_gives_up_and_who_computes_or_gets_on_does_not() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut receive_timeout = ReceiveTimeout::new(Duration::from_secs(10), start);
        assert!((0..10).all(|s| !receive_timeout.is_over(0, at(s))));
        assert!(receive_timeout.is_over(0, at(10)) && receive_timeout.is_over(0, at(11)));
        // There is progress.
        assert!((12..22).all(|s| !receive_timeout.is_over(1, at(s))));
        assert!(receive_timeout.is_over(1, at(22)));
        // The rank was away meanwhile.
        assert!(!receive_timeout.is_over(1, at(100)) && !receive_timeout.is_over(1, at(105)));
        assert!(receive_timeout.is_over(1, at(110)));
    }
}
