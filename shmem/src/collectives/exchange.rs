//! Exchange of small blocks among the PEs of a team. It is also a barrier.
//!
//! A PE writes its block into its slot at the receiver, and raises the slot's flag. There are slots for even and for odd
//! exchanges: a PE that begins an exchange has ended the one before, for which all PEs have sent, and so had ended the
//! one before that. Where not all memory is mapped, mailboxes that hosts pass on round the ring are faster.

use crate::groups::{Flag, Group};
use crate::reach::{copy, Pes};

pub use crate::groups::BLOCK_MAX;

/// Each PE has a block of `len` bytes for each PE, at most [`BLOCK_MAX`]. `block` returns the address of the block for a
/// PE of the team, and `take` gets that of the block of a PE. This PE's own block is not passed through it.
///
/// # Safety
/// The blocks must be readable.
pub unsafe fn exchange(
    pes: &Pes,
    group: &Group,
    block: impl Fn(usize) -> *const u8,
    len: usize,
    mut take: impl FnMut(usize, *const u8),
) {
    let (n, me, area) = (group.n(), group.me(), group.area());
    if n == 1 {
        return;
    }
    let _turn = group.turn();
    let number = area.begin_exchange();
    let others = || (1..n).map(|i| (me + i) % n);
    for other in others() {
        let (peer, slot) = (&pes.peers[group.members()[other]], (Flag::exchange(number, me), number));
        // SAFETY: the caller's guarantee.
        unsafe { area.post(pes, peer, other, slot, block(other), len) };
    }
    others().for_each(|other| take(other, area.receive(pes, Flag::exchange(number, other), number, len)));
    area.have_met();
}

/// Returns true if blocks of `len` bytes go through mailboxes, which know the PEs by their numbers in the world.
pub fn has_mailboxes(pes: &Pes, group: &Group, len: usize) -> bool {
    group.n() == pes.n() && pes.link.has_mailboxes(pes.n(), len) && group.is_in_order()
}

/// Each PE has one block of `len` bytes for all, at most [`BLOCK_MAX`]. `take` gets the addresses of the blocks of the
/// others.
///
/// # Safety
/// The block must be readable.
pub unsafe fn allgather(pes: &Pes, group: &Group, own: *const u8, len: usize, mut take: impl FnMut(usize, *const u8)) {
    let n = group.n();
    if !has_mailboxes(pes, group, len) {
        // SAFETY: the caller's guarantee.
        return unsafe { exchange(pes, group, |_| own, len, take) };
    }
    let _turn = group.turn();
    // SAFETY: the caller's guarantee.
    let blocks = unsafe { pes.link.allgather(n, own, len) };
    group.area().have_met();
    blocks.chunks_exact(len.max(1)).enumerate().filter(|(pe, _)| *pe != group.me()).for_each(|(pe, block)| {
        take(pe, block.as_ptr());
    });
}

/// Exchanges two words, the same ones for all PEs. Returns those of all PEs of the team.
pub fn exchange_words(pes: &Pes, group: &Group, words: [u64; 2]) -> Vec<[u64; 2]> {
    let mut all = vec![words; group.n()];
    // SAFETY: the words are readable, and so is each block, of the same size.
    unsafe {
        allgather(pes, group, words.as_ptr().cast(), size_of_val(&words), |from, block| {
            copy(block, all[from].as_mut_ptr().cast(), size_of_val(&words));
        });
    }
    all
}
