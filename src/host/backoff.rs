//! Exponential back-off for waits without a doorbell, such as for a lock.

use std::time::Duration;

/// Every sleep but the first is at most this fraction of the time already waited.
const PART: u32 = 32;

/// The longest sleep.
const LONGEST: Duration = Duration::from_millis(8);

/// The length of the next sleep after `vain` sleeps, the first of which took `first`; `first` itself if that is long.
pub fn backoff(first: Duration, vain: u32) -> Duration {
    if first >= LONGEST {
        return first;
    }
    let doublings = (vain / PART).saturating_sub(1).min(16);
    (first * (1 << doublings)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_grow_to_a_bound_and_stay_a_small_part_of_the_wait() {
        for first in [100, 1000].map(Duration::from_micros) {
            let mut waited = Duration::ZERO;
            for vain in 0..10_000 {
                let nap = backoff(first, vain);
                assert!(nap == first || nap <= waited / PART && nap <= LONGEST, "{nap:?} after {waited:?}");
                waited += nap;
            }
            assert_eq!(backoff(first, 10_000), LONGEST);
            assert!(waited > LONGEST * 9000, "a sleep for each 8 ms of a long wait");
        }
        assert_eq!(backoff(Duration::MAX, 10_000), Duration::MAX);
    }
}
