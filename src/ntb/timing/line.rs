//! The account of one 64-byte line of a window: stores to it that have not arrived yet in the model.
//!
//! A store goes to memory at once. The line's account, in separate memory, holds the arrival time and the replaced
//! value of each of the latest few stores. A load before the arrival time returns the replaced value, so a word always
//! has the value that it would have on the link.
//!
//! ```text
//! word 0: sequence counter    words 1+2i, 2+2i: (arrival << 3 | index of the word in the line), replaced value
//! ```
//!
//! Only one process or thread at a time stores to a line, which all protocols of ntbring guarantee. If two store
//! concurrently, a store may become visible too early.

use ntbring_memory::Region;
use std::sync::atomic::Ordering;

/// Size of a line and of its account, bytes.
pub const LINE: usize = 64;
/// Number of stores in an account that can be on their way to the line.
const ENTRIES: usize = 3;
/// Number of retries while a writer is changing the account; the writer may have been stopped, so a reader then goes
/// on.
const RETRIES: u32 = 2000;

/// The account of the line at `offset` in the window that `accounts` belongs to.
pub struct Line<'a> {
    accounts: &'a Region,
    at: usize,
    word: u64,
}

impl<'a> Line<'a> {
    /// Returns the account for the word at `offset` of the window.
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

    /// Returns the latest arrival time that the account holds for this word, ns; 0 if none.
    #[inline]
    fn latest(&self) -> u64 {
        let arrivals = (0..ENTRIES).map(|i| self.load(1 + 2 * i));
        arrivals.filter(|a| a & 7 == self.word).map(|a| a >> 3).max().unwrap_or(0)
    }

    /// Returns the value of the word at the time that `clock` returns. `memory` reads the stored value. `seen` is a
    /// time in the past: stores that arrive up to it are visible without reading the clock.
    #[inline]
    pub fn look(&self, memory: impl Fn() -> u64, seen: u64, clock: impl Fn() -> u64) -> u64 {
        for turn in 0.. {
            let changes = self.load(0);
            let value = memory();
            let found = if self.latest() <= seen { value } else { self.as_of(clock(), value) };
            // The value is consistent if the account was not changed meanwhile (seqlock).
            if turn > RETRIES || changes.is_multiple_of(2) && self.load(0) == changes {
                return found;
            }
            pause(turn);
        }
        unreachable!("the loop has no end")
    }

    /// Returns the value replaced by the first store that has not arrived at `now`; `value` if all stores have arrived.
    fn as_of(&self, now: u64, value: u64) -> u64 {
        let under_way = (0..ENTRIES)
            .map(|i| (self.load(1 + 2 * i), self.load(2 + 2 * i)))
            .filter(|(arrival, _)| arrival & 7 == self.word && arrival >> 3 > now)
            .min_by_key(|(arrival, _)| *arrival);
        under_way.map_or(value, |(_, replaced)| replaced)
    }

    /// Records a store in the account and executes it. `now` is the time at which `arrival` was computed, `clock`
    /// returns the current time, `replaced` reads the word and `store` writes it. The store becomes visible at
    /// `arrival`, which must not be less than that of the previous store.
    ///
    /// If more stores are on their way to the line than the account has entries, the latest store to this word arrives
    /// together with the new one.
    pub fn enter(&self, arrival: u64, now: u64, clock: impl Fn() -> u64, replaced: impl Fn() -> u64, store: impl Fn()) {
        // The counter is odd during a change; it is already odd if a writer died during one. A plain load and store
        // suffice; a locked instruction would wait for the transfer of the cache line.
        let changes = self.load(0) | 1;
        self.set(0, changes);
        let entries: [u64; ENTRIES] = std::array::from_fn(|i| self.load(1 + 2 * i));
        let new = arrival << 3 | self.word;
        let free = (0..ENTRIES).find(|&i| entries[i] >> 3 <= now);
        let latest = (0..ENTRIES).filter(|&i| entries[i] & 7 == self.word).max_by_key(|&i| entries[i]);
        match free.ok_or(latest) {
            // The entry may be postponed only if no reader can have seen it arrive, or the word would go back in time
            // for that reader. The clock is read again here: every earlier reader has read an earlier time.
            Err(Some(i)) if entries[i] >> 3 > clock() => self.set(1 + 2 * i, new.max(entries[i])),
            Ok(i) | Err(Some(i)) => self.replace(i, new, replaced()),
            // All entries are of other words of the line: the one with the first arrival becomes visible slightly
            // early.
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
