//! How long to sleep for something that nobody rings for, such as a lock that is given back.

use std::time::Duration;

/// Sleeps in vain after which the next ones are twice as long.
const VAIN: u32 = 8;
/// How often that happens.
const DOUBLINGS: u32 = 7;

/// The next sleep, the first of which are `first`, after so many in `vain`: the longer the wait, the less it is late by, as a share of
/// it, from a quarter to a few hundredths.
pub fn nap(first: Duration, vain: u32) -> Duration {
    first * (1 << (vain / VAIN + 1).ilog2().min(DOUBLINGS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waited_for(first: Duration, vain: u32) -> Duration {
        (0..vain).map(|vain| nap(first, vain)).sum()
    }

    #[test]
    fn who_sleeps_in_vain_is_late_by_little() {
        let first = Duration::from_millis(1);
        let mut waited = Duration::ZERO;
        for vain in 0..10_000 {
            let nap = nap(first, vain);
            assert!(nap == first || nap <= waited / 4 && nap <= 128 * first, "{nap:?} after {waited:?}");
            waited += nap;
        }
        assert_eq!(nap(first, 10_000), 128 * first);
        assert!(nap(first, 100) < waited_for(first, 100) / 20);
    }
}
