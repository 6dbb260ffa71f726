//! Memory for the collectives of a team: each of its PEs has a part in its own control memory, which the others write.

use crate::handles::Ctx;
use crate::reach;
use crate::waiting;
use crate::world::{Memory, Peer, Place, World};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::PoisonError;

/// Size of a line of flags, bytes.
const LINE: usize = 64;
/// Size of a slot for a block, with its flag, bytes.
const SLOT: usize = 576;
/// Largest block of a slot, bytes.
pub const BLOCK_MAX: usize = SLOT - LINE;
/// Lines for the rounds of a barrier.
const ROUNDS: usize = 32;

/// The parts of a team's memory.
pub struct Area {
    /// Offsets of the parts of all PEs in their control memory.
    parts: Vec<usize>,
    me: usize,
    /// Number of barriers that have begun.
    barriers: AtomicU64,
    /// Number of exchanges of blocks that have begun.
    exchanges: AtomicU64,
}

/// A flag of a PE: a word that only one other PE writes, and that only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// Written by a PE of the team in barriers of all with all.
    Of(usize),
    /// Written in a round of a barrier.
    Round(usize),
    /// Written by a PE with its slot for even or odd exchanges.
    Slot(usize, usize),
}

impl Area {
    /// Returns the size of the part of a PE in a team of `n`, bytes.
    pub fn bytes(n: usize) -> usize {
        (n + ROUNDS) * LINE + 2 * n * SLOT
    }

    /// Allocates this PE's part for a team of `n`; None if there is no memory.
    pub fn allocate(world: &World, n: usize) -> Option<usize> {
        let mut control = world.control.lock().unwrap_or_else(PoisonError::into_inner);
        let (bytes, segment) = (Self::bytes(n), world.segment(Memory::Control));
        let at = control.allocate(bytes, LINE)?;
        let backed = world.control_backed.load(Ordering::Relaxed);
        if at + bytes > backed {
            if segment.grow(backed, at + bytes - backed).is_err() {
                control.free(at);
                return None;
            }
            world.control_backed.store(at + bytes, Ordering::Relaxed);
        }
        // SAFETY: the part was just allocated; no other PE knows it yet.
        unsafe { std::ptr::write_bytes((world.control_base + at) as *mut u8, 0, bytes) };
        Some(at)
    }

    /// Takes over the parts of all PEs of a team, in which this PE has the number `me`.
    pub fn new(parts: Vec<usize>, me: usize) -> Area {
        Area { parts, me, barriers: AtomicU64::new(0), exchanges: AtomicU64::new(0) }
    }

    /// Frees this PE's part.
    pub fn free(&self, world: &World) {
        world.control.lock().unwrap_or_else(PoisonError::into_inner).free(self.parts[self.me]);
    }

    /// Returns the offset of a PE's part in its control memory: no other team has it.
    pub fn part(&self, pe: usize) -> usize {
        self.parts[pe]
    }

    /// Begins a barrier and returns its number, from 1.
    pub fn begin_barrier(&self) -> u64 {
        self.barriers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Begins an exchange of blocks and returns its number, from 1.
    pub fn begin_exchange(&self) -> u64 {
        self.exchanges.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the place of a flag in the part of a PE.
    fn place(&self, at: usize, flag: Flag) -> Place {
        let n = self.parts.len();
        let offset = match flag {
            Flag::Of(pe) => pe * LINE,
            Flag::Round(round) => (n + round) * LINE,
            Flag::Slot(parity, pe) => (n + ROUNDS) * LINE + (parity * n + pe) * SLOT,
        };
        Place { memory: Memory::Control, at: self.parts[at] + offset }
    }

    /// Raises a flag of the PE with number `at`.
    #[inline]
    pub fn raise(&self, world: &World, peer: &Peer, at: usize, flag: Flag, value: u64) {
        reach::store(world, Ctx::DEFAULT, peer, self.place(at, flag), value);
    }

    /// Returns a flag of this PE.
    #[inline]
    pub fn look(&self, world: &World, flag: Flag) -> u64 {
        let address = world.address(self.place(self.me, flag));
        // SAFETY: a word of this PE's part, which is accessed atomically only.
        unsafe { AtomicU64::from_ptr(address as *mut u64) }.load(Ordering::Acquire)
    }

    /// Waits until a flag of this PE has reached a value.
    #[inline]
    pub fn wait(&self, world: &World, flag: Flag, value: u64) {
        waiting::until(world, Memory::Control, || self.look(world, flag) >= value);
    }

    /// Writes a block of at most [`BLOCK_MAX`] bytes into this PE's slot at the PE with number `at`, then raises its
    /// flag.
    pub fn post(&self, world: &World, peer: &Peer, at: usize, number: u64, block: &[u8]) {
        let flag = Flag::Slot(number as usize % 2, self.me);
        let slot = self.place(at, flag);
        debug_assert!(block.len() <= BLOCK_MAX);
        if !block.is_empty() {
            let mode = reach::Mode::Blocking;
            // SAFETY: the slot has room, and the block lives until a blocking put returns.
            unsafe { reach::put(world, Ctx::DEFAULT, peer, slot.plus(LINE), block.as_ptr(), block.len(), mode) };
        }
        self.raise(world, peer, at, flag, number);
    }

    /// Waits for the block of a PE in collective `number`, and copies it.
    pub fn receive(&self, world: &World, from: usize, number: u64, block: &mut [u8]) {
        let flag = Flag::Slot(number as usize % 2, from);
        self.wait(world, flag, number);
        let address = world.address(self.place(self.me, flag)) + LINE;
        // SAFETY: the slot of this PE's part has these bytes, and its flag says that they are complete.
        unsafe { reach::copy(address as *const u8, block.as_mut_ptr(), block.len()) };
    }
}
