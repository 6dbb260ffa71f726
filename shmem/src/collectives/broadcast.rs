//! Broadcasts, one way: no PE waits until those that get the data from it have used them. Small blocks go through slots, so
//! that a root may be some broadcasts ahead of the others. On a ring whose neighbours are near, larger data are put from
//! PE to PE.

use super::barrier::synchronise;
use super::schedule;
use crate::groups::{Flag, Group, Way};
use crate::handles::Ctx;
use crate::reach::{self, copy, Mode, Pes};
use crate::symmetric::Place;

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

/// Bytes that a PE passes on at a time.
const SEGMENT: usize = 32 << 10;
/// Bits of a flag for the number of segments of a chain; the number of the chain is above them.
const SEGMENT_BITS: u32 = 32;

/// Returns true if large data of a broadcast go from PE to PE: the team is a ring, and the neighbours are near.
pub fn is_chain(pes: &Pes, group: &Group) -> bool {
    let (n, me) = (group.n(), group.me());
    let is_near = |pe: usize| pes.peers[group.members()[pe]].near;
    schedule::is_ring(pes, group) && is_near((me + 1) % n) && is_near((me + n - 1) % n)
}

/// The root's `len` bytes at `data` are put to `dest` of all others, each of which passes on what has arrived there, at its
/// own `data`.
///
/// # Safety
/// `data` must be readable, and `dest` a place of `len` bytes.
pub unsafe fn broadcast_chain(pes: &Pes, group: &Group, root: usize, data: *const u8, dest: Place, len: usize) {
    let (n, me, area) = (group.n(), group.me(), group.area());
    let _turn = group.turn();
    let number = area.begin_chain();
    let peer = |pe: usize| &pes.peers[group.members()[pe]];
    let mut next = [None; 2];
    next_of(true, n, me, root, |to| {
        let way = if to == (me + 1) % n { Way::Up } else { Way::Down };
        next[way as usize] = Some((to, way));
    });
    let from = (me != root).then(|| match (me + n - root) % n <= n / 2 {
        true => ((me + n - 1) % n, Way::Up),
        false => ((me + 1) % n, Way::Down),
    });
    if let Some((from, way)) = from {
        area.raise(pes, peer(from), from, Flag::Ready(way), number);
    }
    for (segment, at) in (0..len).step_by(SEGMENT).enumerate() {
        let filled = number << SEGMENT_BITS | (segment as u64 + 1);
        if let Some((_, way)) = from {
            area.wait(pes, Flag::Filled(way), filled);
        }
        for (to, way) in next.into_iter().flatten() {
            area.wait(pes, Flag::Ready(way), number);
            // SAFETY: the segment lies within both (the caller's guarantee), and has arrived here.
            unsafe {
                let (from, bytes) = (data.add(at), SEGMENT.min(len - at));
                reach::put(pes, Ctx::DEFAULT, peer(to), dest.plus(at), from, bytes, Mode::Blocking);
            }
            area.raise(pes, peer(to), to, Flag::Filled(way), filled);
        }
    }
}

/// Calls `pass` with the numbers of the PEs to which PE `me` of `n` passes on a block of the root. On a ring, blocks go both
/// ways from PE to PE.
fn next_of(is_ring: bool, n: usize, me: usize, root: usize, mut pass: impl FnMut(usize)) {
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
