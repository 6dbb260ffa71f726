//! Introductions of the PEs of an active set to each other: they exchange where their parts of the group's memory are,
//! without a team that has all of them, and only them.
//!
//! Each PE has a line for each PE in its control memory, where that one writes its introduction, and a line where it
//! confirms the latest introduction that it has read. A PE makes one introduction at a time.

use crate::fail;
use crate::groups::{Area, Control, Group};
use crate::handles::Ctx;
use crate::reach::{self, Pes};
use crate::symmetric::{Memory, Place};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

const LINE: usize = 64;

/// Words of an introduction.
const NUMBER: usize = 0;
const SET: usize = 8;
const PART: usize = 16;

/// The introductions of a PE.
pub struct Introductions {
    /// Number of introductions that this PE has made, and of those of each PE that it has read.
    numbers: Mutex<(u64, Vec<u64>)>,
}

impl Introductions {
    /// Creates the state of a PE in a world of `n`.
    pub fn new(n: usize) -> Introductions {
        Introductions { numbers: Mutex::new((0, vec![0; n])) }
    }

    /// Returns the size of the lines, which begin at the start of the control memory, bytes.
    pub fn bytes(n: usize) -> usize {
        2 * n * LINE
    }

    /// Makes the group of an active set, whose PEs all call it. This PE is number `me` of `members`.
    pub fn introduce(
        &self,
        pes: &Pes,
        control: &Control,
        name: &'static str,
        (start, log_stride, count): (usize, u32, usize),
        members: Vec<usize>,
        me: usize,
    ) -> Group {
        let set = (start as u64) << 40 | u64::from(log_stride) << 32 | count as u64;
        let mut numbers = self.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let (made, read) = &mut *numbers;
        *made += 1;
        let Some(part) = Area::allocate(pes, control, members.len()) else {
            fail::call(name, "there is no memory for another active set");
        };
        let mut parts = vec![part; members.len()];
        let others = || members.iter().copied().enumerate().filter(|&(number, _)| number != me);
        for (_, member) in others() {
            let line = place(pes.me);
            write(pes, member, line.plus(SET), set);
            write(pes, member, line.plus(PART), part as u64);
            write(pes, member, line.plus(NUMBER), *made);
        }
        for (number, member) in others() {
            let line = place(member);
            let is_here = || look(pes, line.plus(NUMBER)) > read[member] && look(pes, line.plus(SET)) == set;
            reach::until(pes, Memory::Control, is_here);
            parts[number] = look(pes, line.plus(PART)) as usize;
            read[member] = look(pes, line.plus(NUMBER));
            write(pes, member, confirmation(pes, pes.me), read[member]);
        }
        for (_, member) in others() {
            let line = confirmation(pes, member);
            reach::until(pes, Memory::Control, || look(pes, line) >= *made);
        }
        Group::new(members, me, 0, Area::new(parts, me))
    }
}

/// Returns the line of a PE for introductions.
fn place(pe: usize) -> Place {
    Place { memory: Memory::Control, at: pe * LINE }
}

/// Returns the line of a PE for confirmations.
fn confirmation(pes: &Pes, pe: usize) -> Place {
    place(pes.n() + pe)
}

/// Stores a word at a PE, after all that was stored there before.
fn write(pes: &Pes, pe: usize, at: Place, value: u64) {
    reach::store(pes, Ctx::DEFAULT, &pes.peers[pe], at, value);
}

/// Loads a word of this PE's lines.
fn look(pes: &Pes, at: Place) -> u64 {
    // SAFETY: a word of this PE's control memory, which is accessed atomically only.
    unsafe { AtomicU64::from_ptr(pes.address(at) as *mut u64) }.load(Ordering::Acquire)
}
