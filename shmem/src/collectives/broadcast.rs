//! Broadcast of a small block, one way: no PE waits for those that get the block after it, so a root may be some broadcasts
//! ahead of the others.

use super::barrier::synchronise;
use super::schedule;
use crate::groups::{Flag, Group};
use crate::reach::{copy, Pes};

/// Largest number of PEs to which the root itself writes the block.
const FROM_ROOT: usize = 16;

/// The root's `len` bytes at `source`, at most [`BLOCK_MAX`](super::exchange::BLOCK_MAX), become those at `dest` of all others.
///
/// # Safety
/// The root's source must be readable, and the destination of the others writable.
pub unsafe fn broadcast_block(pes: &Pes, group: &Group, root: usize, source: *const u8, dest: *mut u8, len: usize) {
    let (me, area) = (group.me(), group.area());
    if !area.has_free_slot() {
        synchronise(pes, group);
    }
    let _turn = group.turn();
    let number = area.begin_broadcast();
    let flag = Flag::broadcast(number);
    let block = if me == root { source } else { area.receive(pes, flag, number, len) };
    next_of(schedule::is_ring(pes, group), group.n(), me, root, |to| {
        // SAFETY: the source, or the block that has arrived in this PE's slot.
        unsafe { area.post(pes, &pes.peers[group.members()[to]], to, (flag, number), block, len) };
    });
    if me != root {
        // SAFETY: the block has arrived; the caller guarantees the destination.
        unsafe { copy(block, dest, len) };
    }
}

/// Calls `pass` with the numbers of the PEs to which PE `me` of `n` passes on a block of the root. On a ring, blocks go both
/// ways from PE to PE.
pub fn next_of(is_ring: bool, n: usize, me: usize, root: usize, mut pass: impl FnMut(usize)) {
    let after = (me + n - root) % n;
    if is_ring {
        // PEs after the root, and before it.
        let (right, left) = (n / 2, n - 1 - n / 2);
        if after < right {
            pass((me + 1) % n);
        }
        if (n - after) % n < left && (after == 0 || after > right) {
            pass((me + n - 1) % n);
        }
    } else if n <= FROM_ROOT {
        if me == root {
            (1..n).for_each(|distance| pass((me + distance) % n));
        }
    } else {
        let mut distance = (after + 1).next_power_of_two();
        while after + distance < n {
            pass((me + distance) % n);
            distance *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pe_gets_the_block_once() {
        for (is_ring, n) in (1..40).flat_map(|n| [(false, n), (true, n)]) {
            for root in 0..n {
                let mut gets = vec![0; n];
                let mut reached = vec![root];
                while let Some(me) = reached.pop() {
                    next_of(is_ring, n, me, root, |to| {
                        assert!(!is_ring || (to + 1) % n == me || (me + 1) % n == to, "{me} to {to} of {n}");
                        gets[to] += 1;
                        reached.push(to);
                    });
                }
                assert!((0..n).all(|pe| gets[pe] == usize::from(pe != root)), "{is_ring} {n} {root}: {gets:?}");
            }
        }
    }
}
