//! Chains: larger data on a ring of PEs whose neighbours are near are put from PE to PE, into the place where they belong. A
//! PE raises a flag at the PE from which data come when it is ready for them, and is told by flags of each part that has
//! arrived, which it passes on.

use super::broadcast::next_of;
use super::schedule;
use crate::groups::{Flag, Group, Way};
use crate::handles::Ctx;
use crate::reach::{self, Mode, Pes};
use crate::symmetric::Place;
use std::sync::MutexGuard;

/// Bytes that a PE passes on at a time.
const SEGMENT: usize = 32 << 10;
/// Bits of a flag for the number of parts that have arrived; the number of the chain is above them.
const PART_BITS: u32 = 32;

/// Returns true if large data go from PE to PE: the team is a ring, and the neighbours are near.
pub fn is_chain(pes: &Pes, group: &Group) -> bool {
    let (n, me) = (group.n(), group.me());
    let is_near = |pe: usize| pes.peers[group.members()[pe]].near;
    schedule::is_ring(pes, group) && is_near((me + 1) % n) && is_near((me + n - 1) % n)
}

/// A chain that this PE has begun.
struct Chain<'a> {
    pes: &'a Pes,
    group: &'a Group,
    /// Value of the flags before a part has arrived.
    base: u64,
    _turn: MutexGuard<'a, ()>,
}

impl<'a> Chain<'a> {
    fn begin(pes: &'a Pes, group: &'a Group) -> Chain<'a> {
        let _turn = group.turn();
        Chain { pes, group, base: group.area().begin_chain() << PART_BITS, _turn }
    }

    /// Returns the number of the next PE in a direction.
    fn next(&self, way: Way) -> usize {
        let (n, me) = (self.group.n(), self.group.me());
        match way {
            Way::Up => (me + 1) % n,
            Way::Down => (me + n - 1) % n,
        }
    }

    fn raise(&self, pe: usize, flag: Flag, value: u64) {
        self.group.area().raise(self.pes, &self.pes.peers[self.group.members()[pe]], pe, flag, value);
    }

    /// Tells the PE from which data come in a direction that they may come.
    fn expect(&self, way: Way) {
        self.raise(self.next(way.opposite()), Flag::Ready(way), self.base);
    }

    /// Waits until so many parts have come in a direction.
    fn wait(&self, way: Way, parts: usize) {
        if parts > 0 {
            self.group.area().wait(self.pes, Flag::Filled(way), self.base + parts as u64);
        }
    }

    /// Puts a part to the next PE in a direction, the `number`th, from 1.
    ///
    /// # Safety
    /// `from` must be readable for `len` bytes, and `to` a place of as many.
    unsafe fn pass(&self, way: Way, number: usize, to: Place, from: *const u8, len: usize) {
        self.group.area().wait(self.pes, Flag::Ready(way), self.base);
        let next = self.next(way);
        let peer = &self.pes.peers[self.group.members()[next]];
        // SAFETY: the caller's guarantee.
        unsafe { reach::put(self.pes, Ctx::DEFAULT, peer, to, from, len, Mode::Blocking) };
        self.raise(next, Flag::Filled(way), self.base + number as u64);
    }
}

/// The root's `len` bytes at `data` are put to `dest` of all others, each of which passes on what has arrived there, at its
/// own `data`.
///
/// # Safety
/// `data` must be readable, and `dest` a place of `len` bytes.
pub unsafe fn broadcast_chain(pes: &Pes, group: &Group, root: usize, data: *const u8, dest: Place, len: usize) {
    let (n, me) = (group.n(), group.me());
    let chain = Chain::begin(pes, group);
    let mut passes_on = [false; 2];
    next_of(true, n, me, root, |to| passes_on[usize::from(to != chain.next(Way::Up))] = true);
    let from = (me != root).then(|| if (me + n - root) % n <= n / 2 { Way::Up } else { Way::Down });
    from.into_iter().for_each(|way| chain.expect(way));
    for (segment, at) in (0..len).step_by(SEGMENT).enumerate() {
        from.into_iter().for_each(|way| chain.wait(way, segment + 1));
        for (way, _) in Way::BOTH.into_iter().zip(passes_on).filter(|(_, passes)| *passes) {
            // SAFETY: the segment lies within both (the caller's guarantee), and has arrived here.
            unsafe { chain.pass(way, segment + 1, dest.plus(at), data.add(at), SEGMENT.min(len - at)) };
        }
    }
}

/// The block of `len` bytes that each PE has at `dest`, in the place of its number, is put to `dest` of all others. `data` is
/// the address of this PE's destination.
///
/// # Safety
/// `dest` must be a place of as many blocks as there are PEs, at `data`.
pub unsafe fn allgather_chain(pes: &Pes, group: &Group, data: *const u8, dest: Place, len: usize) {
    let (n, me) = (group.n(), group.me());
    let chain = Chain::begin(pes, group);
    Way::BOTH.into_iter().for_each(|way| chain.expect(way));
    // Each block goes half of the way round in each direction.
    let blocks = [(Way::Up, n / 2), (Way::Down, n - 1 - n / 2)];
    for distance in 0..n / 2 {
        for (way, _) in blocks.into_iter().filter(|(_, blocks)| distance < *blocks) {
            let block = way.back(me, distance, n) * len;
            chain.wait(way, distance);
            // SAFETY: the block lies within both (the caller's guarantee), and has arrived here or is this PE's own.
            unsafe { chain.pass(way, distance + 1, dest.plus(block), data.add(block), len) };
        }
    }
    blocks.into_iter().for_each(|(way, blocks)| chain.wait(way, blocks));
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
    let (count, me) = (group.n(), group.me());
    let chain = Chain::begin(pes, group);
    Way::BOTH.into_iter().for_each(|way| chain.expect(way));
    let steps = 2 * (count - 1);
    for step in 0..steps {
        for (way, begin, end) in [(Way::Up, 0, n / 2), (Way::Down, n / 2, n)] {
            let bound = |block: usize| begin + (end - begin) * block / count;
            let block = way.back(me, step, count);
            let (at, elements) = (bound(block), bound(block + 1) - bound(block));
            chain.wait(way, step);
            // SAFETY: the block lies within both (the caller's guarantee); what the others have added to it has arrived.
            unsafe {
                if (1..count).contains(&step) {
                    combine(data.add(at), source.add(at), elements);
                }
                let from = if step == 0 { source.add(at) } else { data.add(at).cast_const() };
                let len = elements * size_of::<T>();
                chain.pass(way, step + 1, dest.plus(at * size_of::<T>()), from.cast(), len);
            }
        }
    }
    Way::BOTH.into_iter().for_each(|way| chain.wait(way, steps));
}
