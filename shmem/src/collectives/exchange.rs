//! Exchange of small blocks among the PEs of a team. It is also a barrier.
//!
//! A PE writes its block into its slot at the receiver, and raises the slot's flag. There are slots for even and for odd
//! exchanges: a PE that begins an exchange has ended the one before, for which all PEs have sent, and so had ended the
//! one before that. Where not all memory is mapped, mailboxes that hosts pass on round the ring are faster.

use crate::teams::Group;
use crate::world::World;

pub use crate::teams::BLOCK_MAX;

/// Each PE has a block for each PE, of at most [`BLOCK_MAX`] bytes. `block` returns the block for a PE of the team, and
/// `take` gets the block of a PE by a function that copies it. This PE's own block is not passed through it.
pub fn exchange<'a>(
    world: &World,
    group: &Group,
    block: impl Fn(usize) -> &'a [u8],
    mut take: impl FnMut(usize, &dyn Fn(&mut [u8])),
) {
    let (n, me, area) = (group.n(), group.me(), group.area());
    if n == 1 {
        return;
    }
    let _turn = group.turn();
    let number = area.begin_exchange();
    let others = || (1..n).map(|i| (me + i) % n);
    others().for_each(|other| area.post(world, &world.peers[group.members()[other]], other, number, block(other)));
    others().for_each(|other| take(other, &|to| area.receive(world, other, number, to)));
}

/// Returns true if blocks of `len` bytes go through mailboxes, which know the PEs by their numbers in the world.
pub fn has_mailboxes(world: &World, group: &Group, len: usize) -> bool {
    group.n() == world.n() && world.link.has_mailboxes(world.n(), len) && group.is_in_order()
}

/// Each PE has one block for all, of the same size, at most [`BLOCK_MAX`] bytes. `take` gets the blocks of the others.
pub fn allgather(world: &World, group: &Group, own: &[u8], mut take: impl FnMut(usize, &dyn Fn(&mut [u8]))) {
    let (n, len) = (group.n(), own.len());
    if !has_mailboxes(world, group, len) {
        return exchange(world, group, |_| own, take);
    }
    let _turn = group.turn();
    let blocks = world.link.allgather(n, own);
    for pe in (0..n).filter(|&pe| pe != group.me()) {
        take(pe, &|to| to.copy_from_slice(&blocks[pe * len..][..to.len()]));
    }
}

/// Exchanges two words, the same ones for all PEs. Returns those of all PEs of the team.
pub fn exchange_words(world: &World, group: &Group, words: [u64; 2]) -> Vec<[u64; 2]> {
    let mut all = vec![words; group.n()];
    let bytes = words.map(u64::to_ne_bytes).concat();
    allgather(world, group, &bytes, |from, read| {
        let mut bytes = [0; 16];
        read(&mut bytes);
        let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| bytes[at + i]));
        all[from] = [word(0), word(8)];
    });
    all
}
