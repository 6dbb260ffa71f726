//! How many cores the job has: what decides whether a rank that waits should make room.

use nix::sched::{sched_getaffinity, CpuSet};
use nix::unistd::Pid;

/// The cores that this process may run on, as a card has them.
pub fn mine() -> u128 {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count()).filter(|&n| set.is_set(n).unwrap_or(false)).fold(0, |all, n| all | 1 << (n % 128))
}

/// The number of cores of ranks that may run on these. All emulated hosts share one machine; a rank
/// that is bound to one core does not mean that the others have none.
pub fn count(cards: impl Iterator<Item = u128>) -> usize {
    let all = cards.fold(0, |all, cores| all | cores).count_ones() as usize;
    let (own, allowed) = (mine().count_ones() as usize, std::thread::available_parallelism().map_or(1, |n| n.get()));
    // A quota of the control group allows less than there are.
    if allowed < own {
        allowed
    } else {
        all.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_ranks_have_their_cores_together() {
        assert!(mine() != 0);
        assert_eq!(count([1, 2, 4, 4].into_iter()).min(3), count([7].into_iter()).min(3));
        assert!(count([mine()].into_iter()) >= 1);
    }
}
