//! Registration of segments by the ranks of a host with its forwarder: one slot for each rank, in the part of the
//! host's memory that only its own ranks map.
//!
//! A rank fills its slot, wakes the forwarder, and waits for the result; so the forwarder can open a segment before its
//! owner closes the access to it.

use ntbring_host::{FileAddress, SegmentAddress};
use ntbring_memory::{InWindow, OutWindow, Region};

/// Size of a slot, bytes.
const SLOT: usize = 64;

const STATE: usize = 0;
const OWNER: usize = 8;
const ADDRESS: usize = 16; // four words

const IDLE: u64 = 0;
const OPEN: u64 = 1;
const CLOSE: u64 = 2;
const DONE: u64 = 3;
const REFUSED: u64 = 4;

/// Change of the registered segments that a rank requests from its host's forwarder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Register a segment, which is served from now on.
    Register(SegmentAddress),
    /// Deregister a segment.
    Deregister(SegmentAddress),
}

/// The slots of a host.
pub struct Registry {
    read: InWindow,
    write: OutWindow,
    ranks: usize,
    /// Number of requests at the latest check.
    seen: u64,
}

impl Registry {
    /// Returns the size of the registry of a host with `ranks` ranks, bytes: a slot for each, and the counter of
    /// requests.
    pub fn bytes(ranks: usize) -> usize {
        (ranks + 1) * SLOT
    }

    /// Opens the registry of a host with `ranks` ranks, in memory of [`Registry::bytes`] that was zeros once.
    pub fn new(region: Region, ranks: usize) -> Registry {
        Registry { read: InWindow::new(region.clone()), write: OutWindow::new(region), ranks, seen: 0 }
    }

    /// Makes a request for a rank, which must wait for its answer before it makes another.
    pub fn request(&self, local: usize, owner: u32, change: Change) {
        let (state, address) = match change {
            Change::Register(address) => (OPEN, address),
            Change::Deregister(address) => (CLOSE, address),
        };
        let at = local * SLOT;
        self.write.store(at + OWNER, owner.into());
        for (i, word) in words(&address).into_iter().enumerate() {
            self.write.store(at + ADDRESS + 8 * i, word);
        }
        self.write.store(at + STATE, state);
        self.write.add(self.ranks * SLOT);
    }

    /// Returns true if a rank's request was granted, and false if it was refused; None while there is no answer yet.
    pub fn answer(&self, local: usize) -> Option<bool> {
        let state = self.read.load(local * SLOT + STATE);
        let answered = matches!(state, DONE | REFUSED);
        if answered {
            self.write.store(local * SLOT + STATE, IDLE);
        }
        answered.then_some(state == DONE)
    }

    /// Returns true if there has been a request since the latest [`Registry::grant`].
    #[inline]
    pub fn has_news(&self) -> bool {
        self.requests() != self.seen
    }

    /// Returns the number of requests so far.
    pub fn requests(&self) -> u64 {
        self.read.load(self.ranks * SLOT)
    }

    /// Answers all open requests with the result of `grant`, which gets the owner's rank and the request.
    pub fn grant(&mut self, mut grant: impl FnMut(u32, Change) -> bool) {
        self.seen = self.read.load(self.ranks * SLOT);
        for at in (0..self.ranks).map(|local| local * SLOT) {
            let address = || address(std::array::from_fn(|i| self.read.load(at + ADDRESS + 8 * i)));
            let change = match self.read.load(at + STATE) {
                OPEN => Change::Register(address()),
                CLOSE => Change::Deregister(address()),
                _ => continue,
            };
            let granted = grant(self.read.load(at + OWNER) as u32, change);
            self.write.store(at + STATE, if granted { DONE } else { REFUSED });
        }
    }
}

/// Encodes an address as words.
pub fn words(a: &SegmentAddress) -> [u64; 4] {
    [u64::from(a.file.pid) << 32 | u64::from(a.file.fd), a.file.inode, a.file.token, a.size]
}

/// Decodes an address from its words.
pub fn address(words: [u64; 4]) -> SegmentAddress {
    let [process, inode, token, size] = words;
    SegmentAddress { file: FileAddress { pid: (process >> 32) as u32, fd: process as u32, inode, token }, size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_granted_once_each() {
        let region = Region::anonymous(Registry::bytes(3));
        let (mut forwarder, ranks) = (Registry::new(region.clone(), 3), Registry::new(region, 3));
        assert!(!forwarder.has_news());
        let at = |n: u64| address([n << 32 | 7, n + 1, n + 2, n + 3]);
        ranks.request(0, 10, Change::Register(at(5)));
        ranks.request(2, 12, Change::Deregister(at(6)));
        assert!(forwarder.has_news() && ranks.answer(0).is_none() && ranks.answer(1).is_none());
        let mut seen = Vec::new();
        forwarder.grant(|owner, change| {
            seen.push((owner, change));
            owner == 10
        });
        assert_eq!(seen, [(10, Change::Register(at(5))), (12, Change::Deregister(at(6)))]);
        assert!(!forwarder.has_news());
        assert_eq!((ranks.answer(0), ranks.answer(2)), (Some(true), Some(false)));
        assert_eq!((ranks.answer(0), ranks.answer(2)), (None, None), "an answer is given once");
        forwarder.grant(|_, _| panic!("nothing is requested"));
    }
}
