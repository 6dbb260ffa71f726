//! How long to sleep for something that nobody rings for, such as a lock that is given back.

use std::time::Duration;

/// All sleeps but the first are at most a `PART`th of what was waited already.
const PART: u32 = 32;

/// What they grow to.
const LONGEST: Duration = Duration::from_millis(8);

/// The next sleep after so many in `vain`, the first of which took `first`: always that, if it is long.
pub fn nap(first: Duration, vain: u32) -> Duration {
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
        assert_eq!(nap(Duration::MAX, 10_000), Duration::MAX);
    }
}
