//! What is on its way to one 64-byte line of a window.
//!
//! A store goes to memory at once. Beside the line lies its account: for each of the latest few
//! stores, when it arrives and what it replaced. A load that comes before the arrival is given
//! what was replaced, so a word is always what it would be on the link.
//!
//! ```text
//! word 0: changes    words 1+2i, 2+2i: (arrival << 3 | which word of the line), what it replaced
//! ```
//!
//! One process or thread at a time stores to a line, as in every protocol here. If two do, a store
//! may be seen too early.

use ntbring_memory::Region;
use std::sync::atomic::Ordering;

/// Bytes of a line, and of its account.
pub const LINE: usize = 64;
/// Stores that can be on their way to a line.
const ENTRIES: usize = 3;
/// Turns that are waited for somebody who changes the account and has perhaps been stopped.
const PATIENCE: u32 = 2000;

/// The account of the line at `offset` in the window that `accounts` belongs to.
pub struct Line<'a> {
    accounts: &'a Region,
    at: usize,
    word: u64,
}

impl<'a> Line<'a> {
    /// For the word at `offset` of the window.
    #[inline]
    pub fn new(accounts: &'a Region, offset: usize) -> Self {
        Line { accounts, at: offset / LINE * LINE, word: (offset % LINE / 8) as u64 }
    }

    #[inline]
    fn load(&self, i: usize) -> u64 {
        self.accounts.word(self.at + 8 * i).load(Ordering::Acquire)
    }

    #[inline]
    fn set(&self, i: usize, value: u64) {
        self.accounts.word(self.at + 8 * i).store(value, Ordering::Release);
    }

    /// The latest arrival that the account knows for this word; 0 if none.
    #[inline]
    fn latest(&self) -> u64 {
        let arrivals = (0..ENTRIES).map(|i| self.load(1 + 2 * i));
        arrivals.filter(|a| a & 7 == self.word).map(|a| a >> 3).max().unwrap_or(0)
    }

    /// The word as it is at the time that `clock` tells; `memory` reads what has been stored, and
    /// all that arrives up to `seen`, a time in the past, is known to be there.
    #[inline]
    pub fn look(&self, memory: impl Fn() -> u64, seen: u64, clock: impl Fn() -> u64) -> u64 {
        for turn in 0.. {
            let changes = self.load(0);
            let value = memory();
            let found = if self.latest() <= seen { value } else { self.as_of(clock(), value) };
            // The answer holds if nobody has changed the account meanwhile.
            if turn > PATIENCE || changes % 2 == 0 && self.load(0) == changes {
                return found;
            }
            pause(turn);
        }
        unreachable!("the loop has no end")
    }

    /// What the first store replaced that has not arrived at `now`; `value` if all have.
    fn as_of(&self, now: u64, value: u64) -> u64 {
        let under_way = (0..ENTRIES)
            .map(|i| (self.load(1 + 2 * i), self.load(2 + 2 * i)))
            .filter(|(arrival, _)| arrival & 7 == self.word && arrival >> 3 > now)
            .min_by_key(|(arrival, _)| *arrival);
        under_way.map_or(value, |(_, replaced)| replaced)
    }

    /// Enters a store into the account and carries it out. It was reckoned at `now`; `clock`
    /// tells the time; `replaced` reads the word,
    /// `store` writes it. It is seen from `arrival` on, which must not be less than that of the
    /// store before it.
    ///
    /// If more stores are on their way to the line than the account has room for, the latest to
    /// this word arrives together with the new one.
    pub fn enter(&self, arrival: u64, now: u64, clock: impl Fn() -> u64, replaced: impl Fn() -> u64, store: impl Fn()) {
        // Odd while it is being changed; odd already if somebody died over it. No locked
        // instruction, which would wait until the cache line has come over.
        let changes = self.load(0) | 1;
        self.set(0, changes);
        let entries: [u64; ENTRIES] = std::array::from_fn(|i| self.load(1 + 2 * i));
        let new = arrival << 3 | self.word;
        let free = (0..ENTRIES).find(|&i| entries[i] >> 3 <= now);
        let latest = (0..ENTRIES).filter(|&i| entries[i] & 7 == self.word).max_by_key(|&i| entries[i]);
        match free.ok_or(latest) {
            // Nobody may have seen that it has arrived, or would see it go away again: that is
            // asked of the clock anew, as everybody who looked before has read an earlier time.
            Err(Some(i)) if entries[i] >> 3 > clock() => self.set(1 + 2 * i, new.max(entries[i])),
            Ok(i) | Err(Some(i)) => self.replace(i, new, replaced()),
            // Words beside this one: the first of them to arrive is seen a little early.
            Err(None) => {
                let first = (0..ENTRIES).min_by_key(|&i| entries[i]).unwrap_or(0);
                self.replace(first, new, replaced());
            }
        }
        store();
        self.set(0, changes.wrapping_add(1));
    }

    fn replace(&self, i: usize, entry: u64, replaced: u64) {
        self.set(2 + 2 * i, replaced);
        self.set(1 + 2 * i, entry);
    }
}

fn pause(turn: u32) {
    if turn < 100 {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// One word, its account, and a clock that is set by hand.
    struct Bench {
        accounts: Region,
        memory: [Cell<u64>; 8],
        now: Cell<u64>,
    }

    impl Bench {
        fn new() -> Bench {
            Bench { accounts: Region::anonymous(2 * LINE), memory: Default::default(), now: Cell::new(1000) }
        }

        fn store(&self, word: usize, value: u64, arrival: u64) {
            let cell = &self.memory[word];
            let line = Line::new(&self.accounts, LINE + 8 * word);
            line.enter(arrival, self.now.get(), || self.now.get(), || cell.get(), || cell.set(value));
        }

        fn load(&self, word: usize, now: u64) -> u64 {
            self.now.set(now);
            Line::new(&self.accounts, LINE + 8 * word).look(|| self.memory[word].get(), 1000, || now)
        }
    }

    #[test]
    fn a_word_changes_when_it_arrives() {
        let bench = Bench::new();
        bench.memory[2].set(7);
        bench.store(2, 8, 1500);
        bench.store(2, 9, 1600);
        bench.store(5, 1, 1700);
        let at = |now| [bench.load(2, now), bench.load(5, now), bench.load(1, now)];
        assert_eq!(at(1000), [7, 0, 0]);
        assert_eq!(at(1499), [7, 0, 0]);
        assert_eq!(at(1500), [8, 0, 0]);
        assert_eq!(at(1600), [9, 0, 0]);
        assert_eq!(at(1700), [9, 1, 0]);
        bench.store(2, 10, 1800);
        assert_eq!(at(1799), [9, 1, 0]);
        assert_eq!(at(1800), [10, 1, 0]);
    }

    #[test]
    fn what_was_written_without_an_account_is_there() {
        let bench = Bench::new();
        bench.store(0, 8, 1500);
        bench.memory[3].set(1);
        assert_eq!(bench.load(3, 1001), 1);
        assert_eq!(bench.load(0, 1001), 0);
    }

    #[test]
    fn many_stores_to_a_word_are_seen_late_but_in_order() {
        let bench = Bench::new();
        for n in 1..=10 {
            bench.store(0, n, 1000 + 100 * n);
        }
        assert_eq!([1099, 1100, 1200, 1999, 2000].map(|now| bench.load(0, now)), [0, 1, 2, 2, 10]);
    }

    #[test]
    fn an_account_that_its_holder_never_gave_back_is_taken_over() {
        let bench = Bench::new();
        bench.accounts.word(LINE).store(7, Ordering::Relaxed);
        assert_eq!(bench.load(0, 1001), 0);
        bench.store(0, 5, 1100);
        assert_eq!([1099, 1100].map(|now| bench.load(0, now)), [0, 5]);
    }
}
