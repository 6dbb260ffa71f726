//! Which way payloads are rather fetched from ranks whose memory is reached, and what ranks have told each other of it.

use ntbring_zerocopy::contest::{self, Contests, Mover, Outcome};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What a rank is sent without an offer before it is asked once more whether it is glad of that...
const BELIEVED: u64 = 2 << 30;
/// ...and how old its answer is then at least. Offers that come sooner were made before that answer.
const STALE: Duration = Duration::from_millis(10);

/// What this rank prefers, and others do.
#[derive(Default)]
pub struct Preferences {
    /// None if it is known how payloads are fetched.
    contests: Option<Contests>,
    /// Ranks that would rather be sent what need not be offered to others, and for how many bytes more that is believed.
    glad: BTreeMap<u32, u64>,
    /// When they were told so, those for whom this rank is such a one.
    told: BTreeMap<u32, Instant>,
}

impl Preferences {
    /// With contests if the kernel may copy, but that need not be the best.
    pub fn new(contests: Option<Contests>) -> Preferences {
        Preferences { contests, ..Preferences::default() }
    }

    /// A payload of so many bytes is about to be fetched, which could come either way: which. None if that is not contested.
    /// `small`: nobody who knows that this rank would like it to come without an offer would have offered it.
    pub fn begin(&mut self, src: u32, size: u64, small: bool) -> Option<Mover> {
        let contests = self.contests.as_mut()?;
        // Nothing of what is not offered counts: the sender sees to it that there is another trial.
        let asks = small && contests.are_for_lanes();
        let contest = contests.of(size);
        if asks && self.told.get(&src).is_some_and(|told| told.elapsed() > STALE) {
            contest.try_again();
            self.told.clear();
        }
        Some(contest.begin(size, Instant::now))
    }

    /// So many more bytes are here of a payload of `size`. Returns what a trial has shown if this was the end of one.
    pub fn moved(&mut self, mover: Option<Mover>, size: u64, bytes: u64) -> Option<Outcome> {
        let outcome = self.contests.as_mut()?.of(size).moved(mover?, bytes, Instant::now)?;
        if !contest::is_large(size) {
            self.told.clear();
        }
        Some(outcome)
    }

    /// All of a payload of so many bytes is here, or nothing more will come.
    pub fn end(&mut self, mover: Option<Mover>, size: u64) {
        if let (Some(contests), Some(mover)) = (&mut self.contests, mover) {
            contests.of(size).end(mover, Instant::now);
        }
    }

    /// The kernel has refused to copy it.
    pub fn refused(&mut self, mover: Option<Mover>, size: u64) {
        if let (Some(contests), Some(_)) = (&mut self.contests, mover) {
            contests.of(size).refused(Instant::now);
        }
    }

    /// Whether a sender is to be told that lanes are faster here.
    pub fn tell(&mut self, src: u32) -> bool {
        let gladly = self.contests.as_ref().is_some_and(Contests::are_for_lanes);
        if gladly {
            self.told.entry(src).or_insert_with(Instant::now);
        }
        gladly
    }

    /// A receiver has had so many bytes copied. Of what would be offered to anybody that says nothing about the rest.
    pub fn has_copied(&mut self, dest: u32, size: u64) {
        if !contest::is_large(size) {
            self.heard(dest, false);
        }
    }

    /// What a receiver has told.
    pub fn heard(&mut self, dest: u32, gladly: bool) {
        match gladly && self.contests.is_some() {
            true => self.glad.insert(dest, BELIEVED),
            false => self.glad.remove(&dest),
        };
    }

    /// Whether a rank would rather be sent what need not be offered to others.
    pub fn is_glad(&self, dest: u32) -> bool {
        self.glad.contains_key(&dest)
    }

    /// So many bytes go to a rank without an offer.
    #[inline]
    pub fn spend(&mut self, dest: u32, bytes: u64) {
        if self.glad.is_empty() {
            return;
        }
        if let Some(left) = self.glad.get_mut(&dest) {
            *left = left.saturating_sub(bytes);
            if *left == 0 {
                self.glad.remove(&dest);
            }
        }
    }

    /// Forgets a rank.
    pub fn lose(&mut self, rank: u32) {
        self.glad.remove(&rank);
        self.told.remove(&rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: u64 = 8 << 20;
    const SIZE: u64 = 1 << 20;

    /// One whose lanes have won: what a kernel copies takes a while.
    fn for_lanes() -> Preferences {
        let mut own = Preferences::new(Some(Contests::new(false)));
        while !own.tell(7) {
            let mover = own.begin(7, SIZE, false);
            for _ in 0..TURN >> 20 {
                if mover == Some(Mover::Kernel) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                own.moved(mover, SIZE, 1 << 20);
            }
            own.end(mover, SIZE);
        }
        own
    }

    #[test]
    fn who_is_glad_is_believed_for_a_while() {
        let mut own = Preferences::new(Some(Contests::new(false)));
        own.heard(3, true);
        assert!(own.is_glad(3) && !own.is_glad(4));
        own.spend(4, BELIEVED);
        own.spend(3, BELIEVED - 1);
        assert!(own.is_glad(3));
        own.spend(3, 1);
        assert!(!own.is_glad(3));
        own.heard(3, true);
        own.heard(3, false);
        assert!(!own.is_glad(3));
        own.heard(3, true);
        own.has_copied(3, 16 << 20);
        assert!(own.is_glad(3));
        own.has_copied(3, SIZE);
        assert!(!own.is_glad(3));
        own.heard(3, true);
        own.lose(3);
        assert!(!own.is_glad(3));
        // Whose threshold is a plain number sticks to it.
        let mut sure = Preferences::new(None);
        sure.heard(3, true);
        assert!(!sure.is_glad(3) && !sure.tell(3) && sure.begin(3, SIZE, true).is_none());
    }

    #[test]
    fn an_offer_of_what_was_welcome_without_one_asks_for_another_trial() {
        let mut own = for_lanes();
        // It may have been made before its sender knew, and from another one it says nothing.
        let mover = own.begin(7, SIZE, true);
        own.end(mover, SIZE);
        assert!(own.tell(7));
        std::thread::sleep(2 * STALE);
        for (src, small) in [(8, true), (7, false)] {
            let mover = own.begin(src, SIZE, small);
            own.end(mover, SIZE);
            assert!(own.tell(7), "{src}");
        }
        let mover = own.begin(7, SIZE, true);
        assert!(mover == Some(Mover::Kernel) && !own.tell(7));
    }
}
