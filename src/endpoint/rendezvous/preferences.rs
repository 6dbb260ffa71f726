//! Preferred copy paths for payloads of ranks reachable by kernel copies, and the eager preferences that ranks have
//! announced to each other.

use ntbring_zerocopy::copy_tuner::{self, CopyPath, CopyTuners, Outcome};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Bytes that a rank is sent eagerly before its announced preference expires.
const BELIEVED: u64 = 2 << 30;
/// Minimum age of an announcement before an offer from that sender may start a new trial; an earlier offer was made
/// before the sender knew of the announcement.
const STALE: Duration = Duration::from_millis(10);

/// The preferences of this rank and of others.
#[derive(Default)]
pub struct Preferences {
    /// A/B tuners; None if the copy path is fixed by the settings.
    copy_tuners: Option<CopyTuners>,
    /// Receivers that prefer eager messages where others would get offers, each with the bytes until that preference
    /// expires.
    eager_peers: BTreeMap<u32, u64>,
    /// The senders to which this rank has announced such a preference, with the time of the announcement.
    announced: BTreeMap<u32, Instant>,
}

impl Preferences {
    /// Creates the preferences of a rank. `copy_tuners` has the A/B tuners; None if the copy path is fixed.
    pub fn new(copy_tuners: Option<CopyTuners>) -> Preferences {
        Preferences { copy_tuners, ..Preferences::default() }
    }

    /// Chooses the copy path for a payload of `size` bytes that is about to be fetched. Returns None if there is no
    /// choice. `small`: a sender that knows this rank's eager preference would not have offered this payload, so the
    /// sender has not learned it yet, or it has expired.
    pub fn begin(&mut self, src: u32, size: u64, small: bool) -> Option<CopyPath> {
        let copy_tuners = self.copy_tuners.as_mut()?;
        // Eager messages are not measured, so an expired preference at the sender is what causes a new trial.
        let asks = small && copy_tuners.are_for_lanes();
        let copy_tuner = copy_tuners.of(size);
        if asks && self.announced.get(&src).is_some_and(|announced| announced.elapsed() > STALE) {
            copy_tuner.try_again();
            self.announced.clear();
        }
        Some(copy_tuner.begin(size, Instant::now))
    }

    /// Records `bytes` more bytes of a payload of `size` bytes. Returns the measured result if this ended a trial.
    pub fn moved(&mut self, copy_path: Option<CopyPath>, size: u64, bytes: u64) -> Option<Outcome> {
        let outcome = self.copy_tuners.as_mut()?.of(size).moved(copy_path?, bytes, Instant::now)?;
        if copy_tuner::is_small(size) {
            self.announced.clear();
        }
        Some(outcome)
    }

    /// Records the end of a payload of `size` bytes: all of it has arrived, or no more will.
    pub fn end(&mut self, copy_path: Option<CopyPath>, size: u64) {
        if let (Some(copy_tuners), Some(copy_path)) = (&mut self.copy_tuners, copy_path) {
            copy_tuners.of(size).end(copy_path, Instant::now);
        }
    }

    /// Records that the kernel refused to copy a payload of `size` bytes.
    pub fn refused(&mut self, copy_path: Option<CopyPath>, size: u64) {
        if let (Some(copy_tuners), Some(_)) = (&mut self.copy_tuners, copy_path) {
            copy_tuners.of(size).refused(Instant::now);
        }
    }

    /// Returns true if a sender must be informed that lanes are faster here, and records that it is informed.
    pub fn announce_eager(&mut self, src: u32) -> bool {
        let prefer_eager = self.copy_tuners.as_ref().is_some_and(CopyTuners::are_for_lanes);
        if prefer_eager {
            self.announced.entry(src).or_insert_with(Instant::now);
        }
        prefer_eager
    }

    /// Records that a receiver has copied `size` bytes itself (kernel copy). A payload that is not small is offered to every
    /// receiver, so it says nothing about its eager preference.
    pub fn has_copied(&mut self, dest: u32, size: u64) {
        if copy_tuner::is_small(size) {
            self.heard(dest, false);
        }
    }

    /// Records the eager preference that a receiver has announced with its request to stream `size` bytes. Only small payloads
    /// renew it: it must expire for the receiver to measure again, and others are streamed whether it expires or not.
    pub fn has_asked_to_stream(&mut self, dest: u32, size: u64, prefer_eager: bool) {
        if copy_tuner::is_small(size) || !prefer_eager {
            self.heard(dest, prefer_eager);
        }
    }

    /// Records the eager preference of a receiver.
    fn heard(&mut self, dest: u32, prefer_eager: bool) {
        match prefer_eager && self.copy_tuners.is_some() {
            true => self.eager_peers.insert(dest, BELIEVED),
            false => self.eager_peers.remove(&dest),
        };
    }

    /// True if a receiver prefers eager messages where others would get offers.
    pub fn prefers_eager(&self, dest: u32) -> bool {
        self.eager_peers.contains_key(&dest)
    }

    /// Counts `bytes` eager bytes to a rank.
    #[inline]
    pub fn spend(&mut self, dest: u32, bytes: u64) {
        if self.eager_peers.is_empty() {
            return;
        }
        if let Some(left) = self.eager_peers.get_mut(&dest) {
            *left = left.saturating_sub(bytes);
            if *left == 0 {
                self.eager_peers.remove(&dest);
            }
        }
    }

    /// Drops the preferences of a rank.
    pub fn lose(&mut self, rank: u32) {
        self.eager_peers.remove(&rank);
        self.announced.remove(&rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: u64 = 8 << 20;
    const SIZE: u64 = 64 << 10;

    /// Returns preferences for which lanes have won, because kernel copies are slowed down.
    fn for_lanes() -> Preferences {
        let mut own = Preferences::new(Some(CopyTuners::new(false)));
        while !own.announce_eager(7) {
            let copy_path = own.begin(7, SIZE, false);
            for _ in 0..TURN >> 20 {
                if copy_path == Some(CopyPath::Kernel) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                own.moved(copy_path, SIZE, 1 << 20);
            }
            own.end(copy_path, SIZE);
        }
        own
    }

    #[test]
    fn who_is_glad_is_believed_for_a_while() {
        let mut own = Preferences::new(Some(CopyTuners::new(false)));
        own.heard(3, true);
        assert!(own.prefers_eager(3) && !own.prefers_eager(4));
        own.spend(4, BELIEVED);
        own.spend(3, BELIEVED - 1);
        assert!(own.prefers_eager(3));
        own.spend(3, 1);
        assert!(!own.prefers_eager(3));
        own.heard(3, true);
        own.heard(3, false);
        assert!(!own.prefers_eager(3));
        own.heard(3, true);
        own.has_copied(3, 1 << 20);
        assert!(own.prefers_eager(3));
        own.has_copied(3, SIZE);
        assert!(!own.prefers_eager(3));
        own.has_asked_to_stream(3, 1 << 20, true);
        assert!(!own.prefers_eager(3));
        own.has_asked_to_stream(3, SIZE, true);
        assert!(own.prefers_eager(3));
        own.has_asked_to_stream(3, 1 << 20, false);
        assert!(!own.prefers_eager(3));
        own.heard(3, true);
        own.lose(3);
        assert!(!own.prefers_eager(3));
        // A rank whose threshold is a plain number does not change it.
        let mut sure = Preferences::new(None);
        sure.heard(3, true);
        assert!(!sure.prefers_eager(3) && !sure.announce_eager(3) && sure.begin(3, SIZE, true).is_none());
    }

    #[test]
    fn an_offer_of_what_was_welcome_without_one_asks_for_another_trial() {
        let mut own = for_lanes();
        // The offer may have been made before its sender knew; an offer from another sender says nothing.
        let copy_path = own.begin(7, SIZE, true);
        own.end(copy_path, SIZE);
        assert!(own.announce_eager(7));
        std::thread::sleep(2 * STALE);
        for (src, small) in [(8, true), (7, false)] {
            let copy_path = own.begin(src, SIZE, small);
            own.end(copy_path, SIZE);
            assert!(own.announce_eager(7), "{src}");
        }
        let copy_path = own.begin(7, SIZE, true);
        assert!(copy_path == Some(CopyPath::Kernel) && !own.announce_eager(7));
    }
}
