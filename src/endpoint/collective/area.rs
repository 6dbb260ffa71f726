//! The memory of a rank from which its neighbours read their blocks in an alltoall.
//!
//! ```text
//! | half of even rounds | half of odd rounds |   each half: | slots (own, beyond, transit) to the right | to the left |
//! ```

use ntbring_host::Segment;
use ntbring_memory::{ForeignBytes, ForeignRoom, InWindow, OutWindow};
use ntbring_ntb::Side;

/// Bytes of each block that are transferred in a round.
pub const ROUND: usize = 64 << 10;

/// A slot for a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The block for the neighbour itself.
    Own,
    /// The block for the host beyond the neighbour.
    Beyond,
    /// A block from the other neighbour, in transit to this one.
    Transit,
}

/// The arrangement of the slots in a ring of a given number of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    hosts: usize,
}

impl Layout {
    /// Returns the layout for a ring of two to five hosts.
    pub fn new(hosts: usize) -> Layout {
        Layout { hosts }
    }

    /// Returns the number of hosts of the ring.
    pub fn hosts(self) -> usize {
        self.hosts
    }

    /// Returns the sides with distinct neighbours: in a ring of two hosts both sides have the same neighbour, and
    /// only the right side counts.
    pub fn sides(self) -> impl Iterator<Item = Side> {
        [Side::Right, Side::Left].into_iter().take(if self.hosts == 2 { 1 } else { 2 })
    }

    /// True if the neighbour on side `to` passes blocks on to the host beyond it. Of four hosts, the opposite one is
    /// reached to the right.
    pub fn passes(self, to: Side) -> bool {
        match to {
            Side::Right => self.hosts >= 4,
            Side::Left => self.hosts >= 5,
        }
    }

    fn slots(self, to: Side) -> usize {
        if self.passes(to) {
            3
        } else {
            1
        }
    }

    /// Returns the size of an area in bytes.
    pub fn bytes(self) -> usize {
        2 * self.half()
    }

    fn half(self) -> usize {
        self.sides().map(|side| self.slots(side) * ROUND).sum()
    }

    /// Returns the offset in bytes of a slot in a round.
    fn offset(self, to: Side, slot: Slot, round: usize) -> usize {
        let before = match to {
            Side::Right => 0,
            Side::Left => self.slots(Side::Right),
        };
        let i = match slot {
            Slot::Own => 0,
            Slot::Beyond => 1,
            Slot::Transit => 2,
        };
        debug_assert!(i < self.slots(to));
        round % 2 * self.half() + (before + i) * ROUND
    }
}

/// The area of this rank or of a neighbour.
pub struct Area {
    segment: Segment,
    source: InWindow,
    sink: OutWindow,
    layout: Layout,
}

impl Area {
    /// Uses a segment as an area. Returns None if its size is wrong.
    pub fn new(segment: Segment, layout: Layout) -> Option<Area> {
        let (source, sink) = (segment.source(), segment.sink());
        (segment.size() == layout.bytes() as u64).then_some(Area { segment, source, sink, layout })
    }

    /// Returns the segment. Its lock is held by a rank that writes to the owner's blocks, or by the owner itself once
    /// writing is no longer allowed.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Prevents other processes from opening the segment from now on.
    pub fn seal(&mut self) {
        self.segment.seal();
    }

    /// Copies bytes, at most [`ROUND`], into a slot.
    pub fn put(&self, to: Side, slot: Slot, round: usize, bytes: ForeignBytes) {
        self.sink.write(self.layout.offset(to, slot, round), bytes);
    }

    /// Returns the bytes of a slot.
    pub fn bytes(&self, to: Side, slot: Slot, round: usize, len: usize) -> ForeignBytes<'_> {
        self.source.foreign(self.layout.offset(to, slot, round), len)
    }

    /// Copies the contents of a slot out.
    pub fn take(&self, to: Side, slot: Slot, round: usize, room: ForeignRoom) {
        self.source.copy_out(self.layout.offset(to, slot, round), room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_lie_apart_and_fill_the_area() {
        for hosts in 2..=5 {
            let layout = Layout::new(hosts);
            let slots =
                |to| if layout.passes(to) { &[Slot::Own, Slot::Beyond, Slot::Transit][..] } else { &[Slot::Own] };
            let of_round = |round| {
                layout.sides().flat_map(move |to| slots(to).iter().map(move |&slot| layout.offset(to, slot, round)))
            };
            let mut offsets: Vec<usize> = (0..2).flat_map(of_round).collect();
            offsets.sort_unstable();
            assert!(offsets.iter().copied().eq((0..layout.bytes()).step_by(ROUND)), "{hosts} hosts: {offsets:?}");
            assert!(of_round(0).eq(of_round(2)));
        }
    }
}
