//! Detection of cycles in a wait-for graph. It is independent of the routing algorithm, so that it can check any set
//! of routes: the manager's, those of two routing tables at once, or those of a simulator.

use super::Hwid;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A lane between forwarders: one direction of a link, for one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Channel {
    /// The sending host.
    pub host: Hwid,
    /// Port of the sending host.
    pub port: u8,
    /// Class of the lane.
    pub class: u8,
}

/// A wait-for graph of channels: a packet in one channel needs room in the next channel of its route.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    numbers: BTreeMap<Channel, usize>,
    waits_for: Vec<BTreeSet<usize>>,
}

impl Waits {
    /// Returns an empty graph.
    pub fn new() -> Waits {
        Waits::default()
    }

    /// Adds the dependencies of the packets on a route.
    pub fn add(&mut self, route: &[Channel]) {
        let numbers: Vec<usize> = route.iter().map(|&channel| self.number(channel)).collect();
        for pair in numbers.windows(2) {
            self.waits_for[pair[0]].insert(pair[1]);
        }
    }

    fn number(&mut self, channel: Channel) -> usize {
        let next = self.numbers.len();
        let number = *self.numbers.entry(channel).or_insert(next);
        if number == next {
            self.waits_for.push(BTreeSet::new());
        }
        number
    }

    /// Number of channels in use.
    pub fn channels(&self) -> usize {
        self.numbers.len()
    }

    /// Returns the channels of a cycle, if there is one.
    pub fn cycle(&self) -> Option<Vec<Channel>> {
        // Channels that wait for no remaining channel are removed repeatedly. If any remain, each of them waits for
        // another remaining one.
        let mut left: Vec<usize> = self.waits_for.iter().map(BTreeSet::len).collect();
        let mut before = vec![Vec::new(); left.len()];
        for (channel, nexts) in self.waits_for.iter().enumerate() {
            nexts.iter().for_each(|&next| before[next].push(channel));
        }
        let mut free: Vec<usize> = (0..left.len()).filter(|&channel| left[channel] == 0).collect();
        let mut gone = vec![false; left.len()];
        while let Some(channel) = free.pop() {
            gone[channel] = true;
            for &waiting in &before[channel] {
                left[waiting] -= 1;
                if left[waiting] == 0 {
                    free.push(waiting);
                }
            }
        }
        let start = gone.iter().position(|gone| !gone)?;
        let mut walk = vec![start];
        loop {
            let last = walk[walk.len() - 1];
            let next = self.waits_for[last].iter().copied().find(|&next| !gone[next])?;
            if let Some(first) = walk.iter().position(|&channel| channel == next) {
                let names: BTreeMap<usize, Channel> = self.numbers.iter().map(|(c, n)| (*n, *c)).collect();
                return Some(walk[first..].iter().map(|channel| names[channel]).collect());
            }
            walk.push(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channels(hosts: &[u64]) -> Vec<Channel> {
        hosts.iter().map(|&host| Channel { host: Hwid(host), port: 0, class: 0 }).collect()
    }

    #[test]
    fn cycles_are_found_and_nothing_else() {
        let mut waits = Waits::new();
        waits.add(&channels(&[1, 2, 3]));
        waits.add(&channels(&[1, 3]));
        waits.add(&channels(&[4]));
        assert_eq!((waits.cycle(), waits.channels()), (None, 4));
        waits.add(&channels(&[5, 3, 2]));
        let mut cycle = waits.cycle().unwrap();
        cycle.sort();
        assert_eq!(cycle, channels(&[2, 3]));
    }
}
