//! Memory for the collectives of a team: each of its PEs has a part in its own control memory, which the others write.

use super::control::{Control, LINE};
use crate::handles::Ctx;
use crate::reach::{self, Pes};
use crate::symmetric::{Memory, Peer, Place};
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of a slot for a block, with its flag, bytes.
const SLOT: usize = 576;
/// Largest block of a slot, bytes.
pub const BLOCK_MAX: usize = SLOT - LINE;
/// Largest block that lies in the same line as its flag, bytes.
const SAME_LINE: usize = LINE - size_of::<u64>();
/// Lines for the rounds of a barrier.
const ROUNDS: usize = 32;
/// Lines for chains.
const CHAINS: usize = 4;
/// Slots for broadcasts: a root may be so many broadcasts ahead of the slowest PE.
const BROADCASTS: usize = 64;

/// The parts of a team's memory.
pub struct Area {
    /// Offsets of the parts of all PEs in their control memory.
    parts: Vec<usize>,
    me: usize,
    /// Number of barriers that have begun.
    barriers: AtomicU64,
    /// Number of exchanges of blocks that have begun.
    exchanges: AtomicU64,
    /// Number of broadcasts of blocks that have begun.
    broadcasts: AtomicU64,
    /// Number of chains that have begun.
    chains: AtomicU64,
    /// Number of broadcasts whose blocks all PEs are known to have taken.
    taken: AtomicU64,
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
    /// Written with a slot for broadcasts.
    Broadcast(usize),
    /// Written in a chain, by the next PE in this direction, when it is ready for data.
    Ready(Way),
    /// Written in a chain, by the PE from which data come in this direction, with each segment.
    Filled(Way),
}

/// A direction of a chain of PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To larger numbers.
    Up,
    /// To smaller numbers.
    Down,
}

impl Flag {
    /// Returns the flag of the slot of PE `from` for an exchange with this number.
    pub fn exchange(number: u64, from: usize) -> Flag {
        Flag::Slot(number as usize % 2, from)
    }

    /// Returns the flag of the slot for a broadcast with this number.
    pub fn broadcast(number: u64) -> Flag {
        Flag::Broadcast(number as usize % BROADCASTS)
    }
}

/// Returns the offset of a block of `len` bytes in its slot, bytes.
fn block_offset(len: usize) -> usize {
    match len <= SAME_LINE {
        true => size_of::<u64>(),
        false => LINE,
    }
}

impl Area {
    /// Returns the size of the part of a PE in a team of `n`, bytes.
    pub fn bytes(n: usize) -> usize {
        (n + ROUNDS + CHAINS) * LINE + (2 * n + BROADCASTS) * SLOT
    }

    /// Allocates this PE's part for a team of `n`; None if there is no memory.
    pub fn allocate(pes: &Pes, control: &Control, n: usize) -> Option<usize> {
        control.allocate(pes, Self::bytes(n))
    }

    /// Takes over the parts of all PEs of a team, in which this PE has the number `me`.
    pub fn new(parts: Vec<usize>, me: usize) -> Area {
        let [barriers, exchanges, broadcasts, chains, taken] = std::array::from_fn(|_| AtomicU64::new(0));
        Area { parts, me, barriers, exchanges, broadcasts, chains, taken }
    }

    /// Frees this PE's part.
    pub fn free(&self, control: &Control) {
        control.free(self.parts[self.me]);
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

    /// Begins a chain and returns its number, from 1.
    pub fn begin_chain(&self) -> u64 {
        self.chains.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns true if the slot of the next broadcast is known to be free; otherwise it is after a barrier.
    pub fn has_free_slot(&self) -> bool {
        let begun = self.broadcasts.load(Ordering::Relaxed);
        begun - self.taken.load(Ordering::Relaxed) < BROADCASTS as u64
    }

    /// Begins a broadcast of a block and returns its number, from 1.
    pub fn begin_broadcast(&self) -> u64 {
        self.broadcasts.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes that all PEs have begun a collective that came after all broadcasts so far, of which they have taken the
    /// blocks.
    pub fn have_met(&self) {
        self.taken.store(self.broadcasts.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Returns the place of a flag in the part of a PE.
    fn place(&self, at: usize, flag: Flag) -> Place {
        let n = self.parts.len();
        let slots = (n + ROUNDS + CHAINS) * LINE;
        let offset = match flag {
            Flag::Of(pe) => pe * LINE,
            Flag::Round(round) => (n + round) * LINE,
            Flag::Ready(way) => (n + ROUNDS + way as usize) * LINE,
            Flag::Filled(way) => (n + ROUNDS + 2 + way as usize) * LINE,
            Flag::Slot(parity, pe) => slots + (parity * n + pe) * SLOT,
            Flag::Broadcast(slot) => slots + (2 * n + slot) * SLOT,
        };
        Place { memory: Memory::Control, at: self.parts[at] + offset }
    }

    /// Raises a flag of the PE with number `at`.
    #[inline]
    pub fn raise(&self, pes: &Pes, peer: &Peer, at: usize, flag: Flag, value: u64) {
        reach::store(pes, Ctx::DEFAULT, peer, self.place(at, flag), value);
    }

    /// Returns a flag of this PE.
    #[inline]
    pub fn look(&self, pes: &Pes, flag: Flag) -> u64 {
        let address = pes.address(self.place(self.me, flag));
        // SAFETY: a word of this PE's part, which is accessed atomically only.
        unsafe { AtomicU64::from_ptr(address as *mut u64) }.load(Ordering::Acquire)
    }

    /// Waits until a flag of this PE has reached a value.
    #[inline]
    pub fn wait(&self, pes: &Pes, flag: Flag, value: u64) {
        reach::until(pes, Memory::Control, || self.look(pes, flag) >= value);
    }

    /// Writes a block of at most [`BLOCK_MAX`] bytes into a slot at the PE with number `at`, then raises its flag.
    ///
    /// # Safety
    /// The block must be readable.
    pub unsafe fn post(
        &self,
        pes: &Pes,
        peer: &Peer,
        at: usize,
        (flag, number): (Flag, u64),
        block: *const u8,
        len: usize,
    ) {
        debug_assert!(len <= BLOCK_MAX);
        if len > 0 {
            let to = self.place(at, flag).plus(block_offset(len));
            // SAFETY: the slot has room, and the block lives until a blocking put returns.
            unsafe { reach::put(pes, Ctx::DEFAULT, peer, to, block, len, reach::Mode::Blocking) };
        }
        self.raise(pes, peer, at, flag, number);
    }

    /// Waits for the block of a collective in a slot. Returns its address.
    pub fn receive(&self, pes: &Pes, flag: Flag, number: u64, len: usize) -> *const u8 {
        self.wait(pes, flag, number);
        (pes.address(self.place(self.me, flag)) + block_offset(len)) as *const u8
    }
}
