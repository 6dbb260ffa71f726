//! Sleepers among PEs that write each other's memory without being able to read it: a PE whose thread is about to sleep
//! tells that to the PEs which may store into its memory. After the first store into that memory they send a request, and
//! the host of the sleeper wakes it when it carries that out.
//!
//! The word that tells it may arrive after another PE has looked at it. The sleeper then finds what was stored when it
//! wakes by itself, as it does after each short sleep.

use crate::symmetric::{Memory, Peer};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Size of a word, bytes. It is 0 if no thread sleeps; otherwise its lowest bits are the kind of memory for which the
/// latest one waits, and the others the number of the sleep.
const WORD: usize = 8;
const MEMORY_BITS: u32 = 2;

/// The state of a PE.
pub struct Sleepers {
    /// Number of this PE.
    me: usize,
    /// Address of its control memory.
    control: usize,
    /// Offset of the words of all PEs in the control memory of each.
    at: usize,
    /// Number of this PE's threads that sleep, and of sleeps that have begun.
    threads: Mutex<(u32, u64)>,
}

impl Sleepers {
    /// Returns the size of the words of `n` PEs, bytes.
    pub fn bytes(n: usize) -> usize {
        n * WORD
    }

    /// Creates the state of PE `me`, whose words lie at offset `at` of its control memory, which has the address
    /// `control`, and are 0.
    pub fn new(me: usize, control: usize, at: usize) -> Sleepers {
        Sleepers { me, control, at, threads: Mutex::new((0, 0)) }
    }

    /// Runs `sleep`, which ends if memory of a kind changes. The PEs that may store there, which are those of `peers` with
    /// the numbers `written`, are told of it before and after.
    pub fn tell(&self, peers: &[Peer], written: &[usize], memory: Memory, sleep: impl FnOnce()) {
        if written.is_empty() {
            return sleep();
        }
        let tell = |word: u64| {
            let at = self.at + self.me * WORD;
            let writers = written.iter().filter_map(|&pe| peers[pe].writer(Memory::Control));
            for writer in writers.filter(|writer| writer.has(at, WORD)) {
                // SAFETY: the word is a local. Its place is no other PE's.
                unsafe { writer.write(at, std::ptr::from_ref(&word).cast(), WORD) };
            }
        };
        let threads = || self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut before = threads();
            *before = (before.0 + 1, before.1 + 1);
            tell(before.1 << MEMORY_BITS | memory as u64);
        }
        sleep();
        let mut after = threads();
        after.0 -= 1;
        if after.0 == 0 {
            tell(0);
        }
    }

    /// Returns true if a PE into whose memory this PE has stored is to be woken: it has told that it sleeps until that
    /// memory changes, and this is the first time that this function is called for that sleep.
    #[inline]
    pub fn is_to_be_woken(&self, peer: &Peer, memory: Memory) -> bool {
        let word = self.control + self.at + peer.pe * WORD;
        // SAFETY: an aligned word of this PE's control memory, which is accessed atomically only.
        let word = unsafe { AtomicU64::from_ptr(word as *mut u64) }.load(Ordering::Relaxed);
        word != 0
            && word & ((1 << MEMORY_BITS) - 1) == memory as u64
            && peer.woken.swap(word, Ordering::Relaxed) != word
    }
}
