//! The shared/exclusive lock of an RMA window at one rank: a word in shared memory on which all ranks that map it
//! operate. It is held exclusively by one rank, or shared by several.
//!
//! A rank that wants the exclusive lock and cannot have it makes a reservation, if there is none: the next exclusive
//! holder is then the rank that has waited, however rarely it polls. Shared holders ignore reservations: they lock the
//! windows of many ranks at once, and respecting reservations could deadlock them (a cycle of waits).

use std::sync::atomic::{AtomicU32, Ordering};

/// Bit that is set while the lock is held exclusively.
const ALONE: u32 = 1 << 31;
/// Position in the word of the reserving rank + 1 (15 bits); 0 there means no reservation.
const RESERVED: u32 = 16;
/// Mask of the number of shared holders or, while the lock is held exclusively, of the holder's number + 1 (0: a rank
/// that does not fit).
const TOGETHER: u32 = (1 << RESERVED) - 1;
/// Ranks from this number on do not fit and cannot make a reservation: they compete without one.
const RANKS: u32 = (1 << (31 - RESERVED)) - 1;

fn reservation(word: u32) -> u32 {
    (word & !ALONE) >> RESERVED
}

/// Returns the rank that holds the lock exclusively; None if there is none, or if its number does not fit.
pub fn exclusive_holder(word: &AtomicU32) -> Option<u32> {
    let now = word.load(Ordering::Relaxed);
    (now & TOGETHER).checked_sub(1).filter(|_| now & ALONE != 0)
}

/// Returns the rank that has a reservation; None if there is none.
pub fn reserver(word: &AtomicU32) -> Option<u32> {
    reservation(word.load(Ordering::Relaxed)).checked_sub(1)
}

/// Cancels the reservation of `rank`, if it has one.
pub fn cancel_reservation(word: &AtomicU32, rank: u32) {
    let change = |now: u32| (reservation(now).checked_sub(1) == Some(rank)).then_some(now & (ALONE | TOGETHER));
    // An error means that the rank has no reservation.
    let _ = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
}

/// Takes the lock exclusively for `rank`. Returns false if it is not available now; a reservation may then have been
/// made.
pub fn take_alone(word: &AtomicU32, rank: u32) -> bool {
    let mine = if rank < RANKS { rank + 1 } else { 0 };
    let holder = if rank < TOGETHER { rank + 1 } else { 0 };
    let change = |now: u32| {
        let reserved = reservation(now);
        match now & (ALONE | TOGETHER) {
            0 if reserved == 0 || reserved == mine => Some(ALONE | holder),
            _ if reserved == 0 && mine != 0 => Some(now | mine << RESERVED),
            _ => None,
        }
    };
    word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok_and(|before| before & (ALONE | TOGETHER) == 0)
}

/// Takes the lock shared. Returns false if it is not available now.
pub fn take(word: &AtomicU32) -> bool {
    let change = |now: u32| (now & ALONE == 0 && now & TOGETHER != TOGETHER).then_some(now + 1);
    word.fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok()
}

/// Releases the lock. Returns false if it was not held in that mode.
pub fn give_back(word: &AtomicU32, alone: bool) -> bool {
    let change = |now: u32| match alone {
        true => (now & ALONE != 0).then_some(now & !(ALONE | TOGETHER)),
        false => (now & ALONE == 0 && now & TOGETHER != 0).then_some(now.wrapping_sub(1)),
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
        assert_eq!(word.load(Ordering::Relaxed), ALONE | 1);
    }

    #[test]
    fn the_exclusive_holder_and_the_reserver_are_known() {
        let word = AtomicU32::new(0);
        assert_eq!((exclusive_holder(&word), reserver(&word)), (None, None));
        assert!(take_alone(&word, 5) && !take_alone(&word, 7) && !give_back(&word, false));
        assert_eq!((exclusive_holder(&word), reserver(&word)), (Some(5), Some(7)));
        cancel_reservation(&word, 6);
        assert!(give_back(&word, true) && !take_alone(&word, 8), "it is reserved for rank 7");
        assert_eq!((exclusive_holder(&word), reserver(&word)), (None, Some(7)));
        cancel_reservation(&word, 7);
        assert!(take(&word), "shared holders are not known");
        assert_eq!((exclusive_holder(&word), reserver(&word)), (None, None));
        assert!(give_back(&word, false) && take_alone(&word, 8));
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
