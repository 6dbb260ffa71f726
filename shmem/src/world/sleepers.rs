//! Sleepers among PEs that write each other's memory without being able to read it: a PE whose thread is about to sleep
//! tells that to the PEs which may store into its memory. While a PE sleeps, the others send requests in place of small
//! stores, and its host wakes it when it carries them out.
//!
//! The word that tells it may arrive after another PE has looked at it. The sleeper then finds what was stored when it
//! wakes by itself, as it does after each short sleep.

use super::{Memory, World};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Size of a word, bytes.
const WORD: usize = 8;

/// The state of a PE.
pub struct Sleepers {
    /// Offset of the words of all PEs in the control memory of each.
    at: usize,
    /// Number of this PE's threads that sleep.
    threads: Mutex<u64>,
}

impl Sleepers {
    /// Returns the size of the words of `n` PEs, bytes.
    pub fn bytes(n: usize) -> usize {
        n * WORD
    }

    /// Creates the state of a PE whose words lie at an offset of its control memory, and are 0.
    pub fn new(at: usize) -> Sleepers {
        Sleepers { at, threads: Mutex::new(0) }
    }

    /// Runs `sleep`, before and after which the PEs that may store into this PE's memory are told of it.
    pub fn tell(&self, world: &World, sleep: impl FnOnce()) {
        if world.written.is_empty() {
            return sleep();
        }
        let tell = |threads: u64| {
            for writer in world.written.iter().filter_map(|&pe| world.peers[pe].writer(Memory::Control)) {
                // SAFETY: the word is a local. Its place is no other PE's.
                unsafe { writer.write(self.at + world.me * WORD, std::ptr::from_ref(&threads).cast(), WORD) };
            }
        };
        let threads = || self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = threads();
        *before += 1;
        if *before == 1 {
            tell(1);
        }
        drop(before);
        sleep();
        let mut after = threads();
        *after -= 1;
        if *after == 0 {
            tell(0);
        }
    }

    /// Returns true if a PE has told that it sleeps.
    #[inline]
    pub fn is_asleep(&self, world: &World, pe: usize) -> bool {
        let word = world.control_base + self.at + pe * WORD;
        // SAFETY: an aligned word of this PE's control memory, which is accessed atomically only.
        unsafe { AtomicU64::from_ptr(word as *mut u64) }.load(Ordering::Relaxed) != 0
    }
}
