//! Division of a host's forwarding among its forwarder threads.
//!
//! A transit channel is the traffic of one class that leaves to one side; its lanes belong to no other transit channel.
//! Threads with different transit channels therefore never wait for each other, and there can be as many threads as
//! transit channels: two directions times two classes. Each thread has its own doorbell, numbered like the thread. A
//! sender rings the doorbell of the thread that empties the lane it has written, so every rank learns the number of its
//! neighbours' threads from their cards.

use crate::layout::{has_bulk, Class};
use crate::topology::Topology;

pub use crate::protocol::THREADS_MAX;

use ntbring_ntb::Side;

/// Default number of threads by spare cores, as `(spare cores, threads)`: the number of cores that a host must have
/// beyond one for each of its ranks to get that many threads, if the number is not set.
const SPARE: [(usize, usize); 2] = [(8, 4), (4, 2)];

/// Returns the number of the thread, out of `threads`, that forwards the packets of `class` which leave to side `to`.
/// The thread's doorbell has the same number.
pub fn thread_of(threads: usize, to: Side, class: Class) -> usize {
    match (threads, class) {
        (0 | 1, _) => 0,
        (2, _) => to as usize,
        (3, Class::Urgent) => 0,
        (3, Class::Bulk) => 1 + to as usize,
        _ => 2 * class as usize + to as usize,
    }
}

/// Returns the number of forwarder threads of a host: `wanted` if it is set, limited to the number of transit channels.
/// Without `wanted` it is one, unless there are clearly more cores than ranks; all emulated hosts share the `cores` of
/// the machine.
pub(crate) fn threads(wanted: Option<usize>, topology: &Topology, cores: usize) -> usize {
    let spare = cores.saturating_sub(topology.size()) / topology.hosts();
    let chosen = SPARE.iter().find(|(least, _)| spare >= *least).map_or(1, |(_, threads)| *threads);
    let most = if has_bulk(topology) { THREADS_MAX } else { Side::BOTH.len() };
    wanted.unwrap_or(chosen).clamp(1, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn ring(hosts: usize) -> Topology {
        Topology::new(hosts, &(0..hosts as i32).collect::<Vec<_>>()).unwrap()
    }

    fn channels() -> impl Iterator<Item = (Side, Class)> {
        Side::BOTH.into_iter().flat_map(|side| Class::BOTH.map(|class| (side, class)))
    }

    #[test]
    fn every_thread_has_channels_and_every_channel_a_thread() {
        for threads in 1..=THREADS_MAX {
            let of: BTreeSet<_> = channels().map(|(side, class)| thread_of(threads, side, class)).collect();
            assert_eq!(of, (0..threads).collect(), "{threads} threads");
        }
        // Without lanes for bulk, two threads cover all urgent transit channels.
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
        for wanted in 1..=THREADS_MAX {
            assert_eq!(threads(Some(wanted), &ring(4), 1), wanted);
            assert_eq!(threads(Some(wanted), &ring(3), 64), wanted.min(2));
        }
        // Four ranks on four hosts.
        for (cores, expected) in [(1, 1), (4, 1), (16, 1), (20, 2), (35, 2), (36, 4), (128, 4)] {
            assert_eq!(threads(None, &ring(4), cores), expected, "{cores} cores");
        }
    }
}
