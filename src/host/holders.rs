//! The lock of a window at one rank, as a word that all who reach it work on: held by one alone, or by
//! several together.
//!
//! Who wants it alone and cannot have it makes a reservation, if nobody has: the next to have it alone
//! is then the one who has waited, however slowly it looks. Those who share do not respect that: they
//! lock many ranks' windows at once, and could come to wait for each other in a circle if they did.

use std::sync::atomic::{AtomicU32, Ordering};

const ALONE: u32 = 1 << 31;
/// The rank + 1 that has made a reservation, in so many bits.
const RESERVED: u32 = 16;
/// How many hold it together.
const TOGETHER: u32 = (1 << RESERVED) - 1;
/// Ranks from here on cannot make one: they have to be lucky.
const RANKS: u32 = (1 << (31 - RESERVED)) - 1;

fn reservation(word: u32) -> u32 {
    (word & !ALONE) >> RESERVED
}

/// Takes it for `rank` alone. False if that has to wait.
pub fn take_alone(word: &AtomicU32, rank: u32) -> bool {
    let mine = if rank < RANKS { rank + 1 } else { 0 };
    let change = |now: u32| {
        let reserved = reservation(now);
        match now & (ALONE | TOGETHER) {
            0 if reserved == 0 || reserved == mine => Some(ALONE),
            _ if reserved == 0 && mine != 0 => Some(now | mine << RESERVED),
            _ => None,
        }
    };
    word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok_and(|before| before & (ALONE | TOGETHER) == 0)
}

/// Takes it together with others. False if that has to wait.
pub fn take(word: &AtomicU32) -> bool {
    let change = |now: u32| (now & ALONE == 0 && now & TOGETHER != TOGETHER).then_some(now + 1);
    word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok()
}

/// Gives it back. False if it was not held so.
pub fn give_back(word: &AtomicU32, alone: bool) -> bool {
    let change = |now: u32| match alone {
        true => (now & ALONE != 0).then_some(now & !ALONE),
        false => (now & TOGETHER != 0).then_some(now.wrapping_sub(1)),
    };
    word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn alone_excludes_everybody_and_together_excludes_only_who_wants_it_alone() {
        let word = AtomicU32::new(0);
        assert!(take(&word) && take(&word) && !take_alone(&word, 3));
        assert!(give_back(&word, false) && !take_alone(&word, 3));
        assert!(give_back(&word, false) && !give_back(&word, false));
        assert!(!take_alone(&word, 4), "rank 3 has reserved it");
        assert!(take_alone(&word, 3) && !take_alone(&word, 3) && !take(&word));
        assert!(!give_back(&word, false) && give_back(&word, true) && !give_back(&word, true));
    }

    #[test]
    fn who_shares_does_not_respect_a_reservation() {
        let word = AtomicU32::new(0);
        assert!(take(&word) && !take_alone(&word, 0) && take(&word));
        assert!(give_back(&word, false) && give_back(&word, false) && take_alone(&word, 0));
        assert_eq!(word.load(Ordering::Relaxed), ALONE);
    }

    #[test]
    fn ranks_beyond_those_that_fit_get_it_without_a_reservation() {
        let word = AtomicU32::new(0);
        assert!(take(&word) && !take_alone(&word, u32::MAX - 1) && give_back(&word, false));
        assert_eq!(word.load(Ordering::Relaxed), 0);
        assert!(take_alone(&word, u32::MAX - 1) && give_back(&word, true));
    }

    #[test]
    fn one_at_a_time_holds_it_alone() {
        let (word, sum) = (AtomicU32::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for rank in 0..4 {
                let (word, sum) = (&word, &sum);
                scope.spawn(move || {
                    for _ in 0..2000 {
                        while !take_alone(word, rank) {
                            std::thread::yield_now();
                        }
                        sum.store(sum.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                        assert!(give_back(word, true));
                        while !take(word) {
                            std::thread::yield_now();
                        }
                        assert!(give_back(word, false));
                    }
                });
            }
        });
        assert_eq!((word.into_inner(), sum.into_inner()), (0, 8000));
    }
}
