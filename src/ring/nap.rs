//! How long to sleep for something that nobody rings for, such as a lock that is given back.

use std::time::Duration;

/// A sleep is at most this part of what was waited for already.
const PART: u32 = 32;

/// The longest sleep, unless the first one is longer.
const LONGEST: Duration = Duration::from_millis(8);

/// The next sleep, the first of which are `first`, after so many in `vain`.
pub fn nap(first: Duration, vain: u32) -> Duration {
    let doublings = (vain / PART).saturating_sub(1).min(16);
    (first * (1 << doublings)).min(LONGEST.max(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sleeps_in_vain_is_late_by_little() {
        for first in [100, 1000].map(Duration::from_micros) {
            let mut waited = Duration::ZERO;
            for vain in 0..10_000 {
                let nap = nap(first, vain);
                assert!(nap == first || nap <= waited / PART && nap <= LONGEST, "{nap:?} after {waited:?}");
                waited += nap;
            }
            assert_eq!(nap(first, 10_000), LONGEST);
            assert!(waited > LONGEST * 9000, "a sleep for each 8 ms of a long wait");
        }
        assert_eq!(nap(2 * LONGEST, 10_000), 2 * LONGEST);
    }
}
