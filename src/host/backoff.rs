//! Exponential back-off for waits without a doorbell, such as for a lock.

use std::time::Duration;

/// Inverse of a fraction: every sleep that is longer than the first is at most 1/32 of the time already waited.
const PART: u32 = 32;

/// Upper bound of a sleep's length.
const LONGEST: Duration = Duration::from_millis(8);

/// Returns the length of the next sleep after `vain` unsuccessful sleeps, the first of which took `first`; always
/// `first` if that is not below the upper bound of 8 ms.
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
