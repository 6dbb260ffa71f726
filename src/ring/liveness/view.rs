//! Knowledge of one host about the liveness of all hosts and ranks of a job.
//!
//! Knowledge only grows: counters of keep-alives by their maximum, the set of ended ranks by union. So the order, the
//! number and the direction of its transmissions make no difference, and the next transmission replaces a lost one.

use crate::topology::Topology;
use ntbring_memory::{InWindow, OutWindow};
use ntbring_queue::LINE;

/// Ranks in one word of the set.
const RANKS: usize = 32;

/// Number of keep-alives of each host, and the set of ranks whose processes have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivenessView {
    beats: Vec<u32>,
    ended: Vec<u32>,
}

impl LivenessView {
    /// Returns the knowledge at the start of a job.
    pub fn new(topology: &Topology) -> LivenessView {
        LivenessView { beats: vec![0; topology.hosts()], ended: vec![0; topology.size().div_ceil(RANKS)] }
    }

    /// Returns the size of a table in shared memory that holds such knowledge, bytes; a multiple of the cache line.
    pub fn bytes(topology: &Topology) -> usize {
        ((topology.hosts() + topology.size().div_ceil(RANKS)) * 8).next_multiple_of(LINE)
    }

    /// Adds an obituary: the process of a rank has ended.
    pub fn end(&mut self, rank: u32) {
        self.ended[rank as usize / RANKS] |= 1 << (rank as usize % RANKS);
    }

    /// Returns true if the process of a rank has ended.
    pub fn has_ended(&self, rank: u32) -> bool {
        self.ended[rank as usize / RANKS] >> (rank as usize % RANKS) & 1 != 0
    }

    /// Adds a keep-alive of a host.
    pub fn beat(&mut self, host: usize) {
        self.beats[host] = self.beats[host].wrapping_add(1);
    }

    /// Returns the number of keep-alives of a host.
    pub fn beats(&self, host: usize) -> u32 {
        self.beats[host]
    }

    /// Writes the knowledge into a table.
    pub fn write(&self, table: &OutWindow) {
        for (i, &value) in self.beats.iter().chain(&self.ended).enumerate() {
            table.store(8 * i, word(value));
        }
        table.fence();
    }

    /// Adds the knowledge in a table. Words that are not completely written are ignored. Returns true if ranks have
    /// ended that were not known to have ended.
    pub fn read(&mut self, table: &InWindow) -> bool {
        let hosts = self.beats.len();
        for (host, beats) in self.beats.iter_mut().enumerate() {
            let newer = parse(table.load(8 * host)).filter(|received| received.wrapping_sub(*beats) as i32 > 0);
            *beats = newer.unwrap_or(*beats);
        }
        let mut news = false;
        for (i, ended) in self.ended.iter_mut().enumerate() {
            let received = parse(table.load(8 * (hosts + i))).unwrap_or(0);
            news |= received & !*ended != 0;
            *ended |= received;
        }
        news
    }
}

/// Encodes a value: once plain and once inverted, so that no other word is decoded as a value.
fn word(value: u32) -> u64 {
    u64::from(!value) << 32 | u64::from(value)
}

/// Decodes a word; None if it is not the encoding of a value.
fn parse(received: u64) -> Option<u32> {
    Some(received as u32).filter(|&value| word(value) == received)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ntbring_memory::Region;
    use proptest::prelude::*;

    fn tables(topology: &Topology) -> (InWindow, OutWindow) {
        let region = Region::anonymous(LivenessView::bytes(topology));
        (InWindow::new(region.clone()), OutWindow::new(region))
    }

    #[test]
    fn unwritten_and_damaged_tables_say_nothing() {
        let topology = Topology::simulated(5);
        let (read, write) = tables(&topology);
        let mut view = LivenessView::new(&topology);
        assert!(!view.read(&read) && view == LivenessView::new(&topology));
        for (i, bit) in (0..6).flat_map(|i| (0..64).map(move |bit| (i, bit))) {
            write.store(8 * i, word(3) ^ 1 << bit);
            assert!(!view.read(&read) && view == LivenessView::new(&topology), "bit {bit} of word {i}");
        }
    }

    #[test]
    fn counters_pass_their_largest_value() {
        let topology = Topology::simulated(2);
        let (read, write) = tables(&topology);
        let mut sender = LivenessView { beats: vec![u32::MAX, 0], ended: vec![0] };
        let mut receiver = sender.clone();
        sender.beat(0);
        sender.write(&write);
        receiver.read(&read);
        assert_eq!((receiver.beats(0), &receiver), (0, &sender));
    }

    proptest! {
        #[test]
        fn knowledge_spreads_in_any_order(steps in proptest::collection::vec((0usize..4, 0usize..4, 0u32..70), 0..200)) {
            let topology = Topology::new(4, &[[0; 20], [1; 20], [2; 20], [3; 20]].concat()).unwrap();
            let (read, write) = tables(&topology);
            let mut hosts = vec![LivenessView::new(&topology); 4];
            let mut all = LivenessView::new(&topology);
            for (from, to, rank) in steps {
                hosts[from].beat(from);
                hosts[from].end(rank);
                all.beats[from] += 1;
                all.end(rank);
                hosts[from].write(&write);
                let before = hosts[to].clone();
                let news = hosts[to].read(&read);
                prop_assert_eq!(news, hosts[to].ended != before.ended);
                prop_assert!((0..4).all(|host| hosts[to].beats(host) >= before.beats(host)));
            }
            for (from, to) in [(0, 1), (1, 2), (2, 3)] {
                hosts[from].write(&write);
                hosts[to].read(&read);
            }
            prop_assert_eq!(&hosts[3], &all);
        }
    }
}
