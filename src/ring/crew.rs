//! How what a host forwards is divided among its transfer threads.
//!
//! What goes to one side, of one class, is a track, and has lanes that no other track has. So threads with different tracks
//! never wait for each other, and there can be as many as there are tracks: two directions, two classes. Each thread has a
//! doorbell of its own, with its own number; who writes into a lane rings that of the thread which empties it, so
//! everybody knows from the cards how many threads the neighbours have.

use super::plan::{has_bulk, Class};
use super::Topology;
use ntbring_ntb::Side;

/// The most threads that can have something to do.
pub const THREADS_MAX: usize = 4;

/// Cores that a host must have beside those of its ranks for so many threads, where the number is not set.
const SPARE: [(usize, usize); 2] = [(8, 4), (4, 2)];

/// The number of the thread, of so many, that forwards what goes to a side, of a class; and of its doorbell.
pub fn thread_of(threads: usize, to: Side, class: Class) -> usize {
    match (threads, class) {
        (0 | 1, _) => 0,
        (2, _) => to as usize,
        (3, Class::Urgent) => 0,
        (3, Class::Bulk) => 1 + to as usize,
        _ => 2 * class as usize + to as usize,
    }
}

/// How many threads a host has: as wished, as far as there is work for them. Without a wish one, unless there are clearly
/// more cores than ranks; the emulated hosts share them.
pub(super) fn threads(wish: Option<usize>, topology: &Topology, cores: usize) -> usize {
    let spare = cores.saturating_sub(topology.size()) / topology.hosts();
    let chosen = SPARE.iter().find(|(least, _)| spare >= *least).map_or(1, |(_, threads)| *threads);
    let most = if has_bulk(topology) { THREADS_MAX } else { Side::BOTH.len() };
    wish.unwrap_or(chosen).clamp(1, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn ring(hosts: usize) -> Topology {
        Topology::new(hosts, &(0..hosts as i32).collect::<Vec<_>>()).unwrap()
    }

    fn tracks() -> impl Iterator<Item = (Side, Class)> {
        Side::BOTH.into_iter().flat_map(|side| Class::BOTH.map(|class| (side, class)))
    }

    #[test]
    fn every_thread_has_tracks_and_every_track_a_thread() {
        for threads in 1..=THREADS_MAX {
            let of: BTreeSet<_> = tracks().map(|(side, class)| thread_of(threads, side, class)).collect();
            assert_eq!(of, (0..threads).collect(), "{threads} threads");
        }
        // Where there is no bulk, two threads have all that is urgent.
        let urgent = Side::BOTH.map(|side| thread_of(2, side, Class::Urgent));
        assert_eq!(urgent, [0, 1]);
    }

    #[test]
    fn bulk_of_both_directions_is_never_one_threads_if_there_are_others() {
        for threads in 2..=THREADS_MAX {
            let [left, right] = Side::BOTH.map(|side| thread_of(threads, side, Class::Bulk));
            assert_ne!(left, right, "{threads} threads");
        }
    }

    #[test]
    fn threads_are_as_wished_or_as_cores_allow() {
        for wish in 1..=THREADS_MAX {
            assert_eq!(threads(Some(wish), &ring(4), 1), wish);
            assert_eq!(threads(Some(wish), &ring(3), 64), wish.min(2));
        }
        // Four ranks on four hosts.
        for (cores, expected) in [(1, 1), (4, 1), (16, 1), (20, 2), (35, 2), (36, 4), (128, 4)] {
            assert_eq!(threads(None, &ring(4), cores), expected, "{cores} cores");
        }
    }
}
