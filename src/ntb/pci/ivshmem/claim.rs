//! The claim of a host to one half of the shared memory.
//!
//! The device does not tell which peers there are, and the memory outlives them: a machine that starts again has a new id
//! and finds the claim of its former self. So each owner counts a beat as long as it lives, and a claim whose beat stands
//! still is replaced if no half is free. A claim with this host's own id is always a former one: one process has the
//! device at a time.
//!
//! | offset in the page | holds |
//! |---|---|
//! | 0 | mark of a memory that ntbring uses |
//! | 8, 16 | claims: a random number in the upper half, the id plus 1 in the lower half; 0: free |
//! | 24, 32 | beats of the owners |

use ntbring_memory::Region;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The mark, with the version of the layout in the last byte.
const MARK: u64 = u64::from_be_bytes(*b"ntbring\x01");

const CLAIMS: [usize; 2] = [8, 16];
const BEATS: [usize; 2] = [24, 32];

/// Time between two looks at the claims of others.
const LOOK: Duration = Duration::from_millis(10);

/// A reason for which a half cannot be claimed.
#[derive(Debug, PartialEq, Eq)]
pub enum ClaimError {
    /// The memory holds data of another program.
    Foreign,
    /// Both halves have owners that live: the peers with these ids.
    Taken([u16; 2]),
}

/// The claim of a host, until this is dropped.
pub struct Claim {
    page: Region,
    /// The half, 0 or 1.
    pub side: usize,
    word: u64,
}

impl Claim {
    /// Claims a half for the peer with this id. `number` is a random number. If both halves have an owner, this waits for
    /// `patience` and replaces one whose beat has stood still all the time.
    pub fn take(page: Region, id: u16, number: u32, patience: Duration) -> Result<Claim, ClaimError> {
        let mark = page.word(0).compare_exchange(0, MARK, Ordering::AcqRel, Ordering::Acquire);
        if mark.is_err_and(|found| found != MARK) {
            return Err(ClaimError::Foreign);
        }
        let word = u64::from(number) << 32 | (u64::from(id) + 1);
        let load = |at: usize| page.word(at).load(Ordering::Acquire);
        let side = loop {
            let claims = CLAIMS.map(load);
            let is_own = |claim: &u64| owner(*claim) == Some(id);
            let place = claims.iter().position(is_own).or_else(|| claims.iter().position(|&claim| claim == 0));
            let side = match place {
                Some(side) => side,
                None => {
                    let (start, beats) = (Instant::now(), BEATS.map(load));
                    while start.elapsed() < patience && CLAIMS.map(load) == claims {
                        std::thread::sleep(LOOK);
                    }
                    if CLAIMS.map(load) != claims {
                        continue;
                    }
                    let silent = (0..2).find(|&side| load(BEATS[side]) == beats[side]);
                    let owners = claims.map(|claim| owner(claim).unwrap_or(0));
                    let side = silent.ok_or(ClaimError::Taken(owners))?;
                    log::warn!("peer {} of the shared memory is silent: its half is taken over", owners[side]);
                    side
                }
            };
            let taken =
                page.word(CLAIMS[side]).compare_exchange(claims[side], word, Ordering::AcqRel, Ordering::Acquire);
            if taken.is_ok() {
                break side;
            }
        };
        Ok(Claim { page, side, word })
    }

    /// Returns true unless another peer has replaced the claim.
    pub fn is_held(&self) -> bool {
        self.page.word(CLAIMS[self.side]).load(Ordering::Acquire) == self.word
    }

    /// Shows that the owner lives.
    pub fn beat(&self) {
        let beat = self.page.word(BEATS[self.side]);
        beat.store(beat.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let claim = self.page.word(CLAIMS[self.side]);
        // If it fails, another peer has replaced the claim.
        let _ = claim.compare_exchange(self.word, 0, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// Returns the id of the peer that has made a claim; None if there is no claim.
fn owner(claim: u64) -> Option<u16> {
    (claim as u32).checked_sub(1).map(|id| id as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    const SHORT: Duration = Duration::from_millis(40);
    const LONG: Duration = Duration::from_secs(60);

    fn take(page: &Region, id: u16, patience: Duration) -> Result<Claim, ClaimError> {
        Claim::take(page.clone(), id, 7 + u32::from(id), patience)
    }

    #[test]
    fn two_peers_have_a_half_each() {
        let page = Region::anonymous(4096);
        let (first, second) = (take(&page, 0, LONG).unwrap(), take(&page, u16::MAX, LONG).unwrap());
        assert_eq!((first.side, second.side), (0, 1));
        assert!(first.is_held() && second.is_held());
        drop(first);
        assert_eq!(take(&page, 9, LONG).unwrap().side, 0, "a half that was given back is free");
    }

    #[test]
    fn a_former_claim_of_the_same_peer_is_replaced_at_once() {
        let page = Region::anonymous(4096);
        let (former, other) = (take(&page, 3, LONG).unwrap(), take(&page, 4, LONG).unwrap());
        let present = Claim::take(page.clone(), 3, 1, LONG).unwrap();
        assert!(present.side == former.side && present.is_held() && other.is_held() && !former.is_held());
        drop(former);
        assert!(present.is_held(), "a claim that was replaced is not given back");
    }

    #[test]
    fn the_half_of_a_silent_peer_is_taken_over_and_that_of_a_living_one_is_not() {
        let page = Region::anonymous(4096);
        let (dead, living) = (take(&page, 1, LONG).unwrap(), take(&page, 2, LONG).unwrap());
        let (is_over, is_beating) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    living.beat();
                    if is_beating.load(Ordering::Relaxed) {
                        dead.beat();
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            is_beating.store(true, Ordering::Relaxed);
            let refused = take(&page, 3, Duration::from_secs(1));
            assert_eq!(refused.err(), Some(ClaimError::Taken([1, 2])));
            is_beating.store(false, Ordering::Relaxed);
            let successor = take(&page, 3, Duration::from_secs(1)).unwrap();
            assert!(successor.side == dead.side && !dead.is_held() && living.is_held());
            is_over.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn memory_of_another_program_is_left_alone() {
        let page = Region::anonymous(4096);
        page.word(0).store(5, Ordering::Relaxed);
        assert_eq!(take(&page, 0, SHORT).err(), Some(ClaimError::Foreign));
        assert!((0..512).all(|word| page.word(8 * word).load(Ordering::Relaxed) == 5 * u64::from(word == 0)));
    }
}
