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

/// Request of a rank to its host's forwarder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Register a segment, which is served from now on.
    Open(SegmentAddress),
    /// Deregister a segment.
    Close(SegmentAddress),
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

    /// Makes a request in the name of a rank, which must wait for its answer before it makes another.
    pub fn wish(&self, local: usize, owner: u32, wish: Wish) {
        let (state, address) = match wish {
            Wish::Open(address) => (OPEN, address),
            Wish::Close(address) => (CLOSE, address),
        };
        let at = local * SLOT;
        self.write.store(at + OWNER, owner.into());
        for (i, word) in words(&address).into_iter().enumerate() {
            self.write.store(at + ADDRESS + 8 * i, word);
        }
        self.write.store(at + STATE, state);
        self.write.add(self.ranks * SLOT);
    }

    /// Returns whether a rank's request was granted, once that is known.
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
        self.wishes() != self.seen
    }

    /// Returns the number of requests so far.
    pub fn wishes(&self) -> u64 {
        self.read.load(self.ranks * SLOT)
    }

    /// Answers all open requests with the result of `grant`, which gets the owner's rank and the request.
    pub fn grant(&mut self, mut grant: impl FnMut(u32, Wish) -> bool) {
        self.seen = self.read.load(self.ranks * SLOT);
        for at in (0..self.ranks).map(|local| local * SLOT) {
            let address = || address(std::array::from_fn(|i| self.read.load(at + ADDRESS + 8 * i)));
            let wish = match self.read.load(at + STATE) {
                OPEN => Wish::Open(address()),
                CLOSE => Wish::Close(address()),
                _ => continue,
            };
            let granted = grant(self.read.load(at + OWNER) as u32, wish);
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
    fn wishes_are_granted_once_each() {
        let region = Region::anonymous(Registry::bytes(3));
        let (mut forwarder, ranks) = (Registry::new(region.clone(), 3), Registry::new(region, 3));
        assert!(!forwarder.has_news());
        let at = |n: u64| address([n << 32 | 7, n + 1, n + 2, n + 3]);
        ranks.wish(0, 10, Wish::Open(at(5)));
        ranks.wish(2, 12, Wish::Close(at(6)));
        assert!(forwarder.has_news() && ranks.answer(0).is_none() && ranks.answer(1).is_none());
        let mut seen = Vec::new();
        forwarder.grant(|owner, wish| {
            seen.push((owner, wish));
            owner == 10
        });
        assert_eq!(seen, [(10, Wish::Open(at(5))), (12, Wish::Close(at(6)))]);
        assert!(!forwarder.has_news());
        assert_eq!((ranks.answer(0), ranks.answer(2)), (Some(true), Some(false)));
        assert_eq!((ranks.answer(0), ranks.answer(2)), (None, None), "an answer is given once");
        forwarder.grant(|_, _| panic!("nothing is wished"));
    }
}
