//! Chains: larger data on a ring of PEs whose neighbours are near are put from PE to PE, into the place where they belong. A
//! PE raises a flag at the PE from which data come when it is ready for them, and is told by flags of each part that has
//! arrived, which it passes on.

use super::broadcast::next_of;
use super::schedule;
use crate::groups::{Flag, Group, Way};
use crate::handles::Ctx;
use crate::reach::{self, Mode, Pes};
use crate::symmetric::Place;

/// Bytes that a PE passes on at a time.
const SEGMENT: usize = 32 << 10;
/// Bits of a flag for the number of segments of a chain; the number of the chain is above them.
const SEGMENT_BITS: u32 = 32;

/// Returns true if large data go from PE to PE: the team is a ring, and the neighbours are near.
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
    let base = area.begin_chain() << SEGMENT_BITS;
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
        area.raise(pes, peer(from), from, Flag::Ready(way), base);
    }
    for (segment, at) in (0..len).step_by(SEGMENT).enumerate() {
        let filled = base + segment as u64 + 1;
        if let Some((_, way)) = from {
            area.wait(pes, Flag::Filled(way), filled);
        }
        for (to, way) in next.into_iter().flatten() {
            area.wait(pes, Flag::Ready(way), base);
            // SAFETY: the segment lies within both (the caller's guarantee), and has arrived here.
            unsafe {
                let (from, bytes) = (data.add(at), SEGMENT.min(len - at));
                reach::put(pes, Ctx::DEFAULT, peer(to), dest.plus(at), from, bytes, Mode::Blocking);
            }
            area.raise(pes, peer(to), to, Flag::Filled(way), filled);
        }
    }
}

/// The block of `len` bytes that each PE has at `dest`, in the place of its number, is put to `dest` of all others. `data` is
/// the address of this PE's destination.
///
/// # Safety
/// `dest` must be a place of as many blocks as there are PEs, at `data`.
pub unsafe fn allgather_chain(pes: &Pes, group: &Group, data: *const u8, dest: Place, len: usize) {
    let (n, me, area) = (group.n(), group.me(), group.area());
    let _turn = group.turn();
    let base = area.begin_chain() << SEGMENT_BITS;
    let peer = |pe: usize| &pes.peers[group.members()[pe]];
    // In each direction: the next PE, the PE from which blocks come, and how many come.
    let (above, below) = ((me + 1) % n, (me + n - 1) % n);
    let ways = [(Way::Up, above, below, n / 2), (Way::Down, below, above, n - 1 - n / 2)];
    for (way, _, from, _) in ways {
        area.raise(pes, peer(from), from, Flag::Ready(way), base);
    }
    for distance in 0..n / 2 {
        for (way, to, _, _) in ways.into_iter().filter(|(.., blocks)| distance < *blocks) {
            let block = match way {
                Way::Up => (me + n - distance) % n,
                Way::Down => (me + distance) % n,
            };
            // A PE's own block need not arrive.
            area.wait(pes, Flag::Filled(way), if distance == 0 { 0 } else { base + distance as u64 });
            area.wait(pes, Flag::Ready(way), base);
            // SAFETY: the block lies within both (the caller's guarantee), and has arrived here.
            unsafe {
                let (at, from) = (dest.plus(block * len), data.add(block * len));
                reach::put(pes, Ctx::DEFAULT, peer(to), at, from, len, Mode::Blocking);
            }
            area.raise(pes, peer(to), to, Flag::Filled(way), base + distance as u64 + 1);
        }
    }
    for (way, _, _, blocks) in ways {
        area.wait(pes, Flag::Filled(way), base + blocks as u64);
    }
}

/// Combines the `n` elements that each PE has at `source`; all get the results at `dest`, which is at `data` here. Each
/// direction carries a half of the vector, in as many blocks as there are PEs: each block goes round the ring, where each PE
/// adds its own elements, and then round again as a result. `combine` combines elements at the first address with those at
/// the second one.
///
/// # Safety
/// `source` must be readable, and must not overlap the destination.
pub unsafe fn allreduce_chain<T: Copy>(
    pes: &Pes,
    group: &Group,
    source: *const T,
    (data, dest): (*mut T, Place),
    n: usize,
    combine: impl Fn(*mut T, *const T, usize),
) {
    let (count, me, area) = (group.n(), group.me(), group.area());
    let _turn = group.turn();
    let base = area.begin_chain() << SEGMENT_BITS;
    let peer = |pe: usize| &pes.peers[group.members()[pe]];
    let (above, below) = ((me + 1) % count, (me + count - 1) % count);
    // In each direction: the next PE, the one before, and where the half begins and ends.
    let ways = [(Way::Up, above, below, 0, n / 2), (Way::Down, below, above, n / 2, n)];
    for (way, _, from, ..) in ways {
        area.raise(pes, peer(from), from, Flag::Ready(way), base);
    }
    let steps = 2 * (count - 1);
    for step in 0..steps {
        for (way, to, _, begin, end) in ways {
            let block = match way {
                Way::Up => (me + 2 * count - step) % count,
                Way::Down => (me + step) % count,
            };
            let bound = |block: usize| begin + (end - begin) * block / count;
            let (at, elements) = (bound(block), bound(block + 1) - bound(block));
            // What a PE sends first, its own elements, need not arrive.
            area.wait(pes, Flag::Filled(way), if step == 0 { 0 } else { base + step as u64 });
            area.wait(pes, Flag::Ready(way), base);
            // SAFETY: the block lies within both (the caller's guarantee); what the others have added to it has arrived.
            unsafe {
                if (1..count).contains(&step) {
                    combine(data.add(at), source.add(at), elements);
                }
                let from = if step == 0 { source.add(at) } else { data.add(at).cast_const() };
                let (to_place, len) = (dest.plus(at * size_of::<T>()), elements * size_of::<T>());
                reach::put(pes, Ctx::DEFAULT, peer(to), to_place, from.cast(), len, Mode::Blocking);
            }
            area.raise(pes, peer(to), to, Flag::Filled(way), base + step as u64 + 1);
        }
    }
    for (way, ..) in ways {
        area.wait(pes, Flag::Filled(way), base + steps as u64);
    }
}
