//! The memory of a rank from which its neighbours take what it has for them in an exchange.
//!
//! ```text
//! | half of even rounds | half of odd rounds |        each: | what is own, and what is in transit, for the right | for the left |
//! ```

use ntbring_host::Segment;
use ntbring_memory::{ForeignBytes, ForeignRoom, InWindow, OutWindow};
use ntbring_ntb::Side;

/// Bytes of each block that move in a round.
pub const ROUND: usize = 64 << 10;

/// What is kept for a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The block that is for it.
    Own,
    /// That which is for the host beyond it.
    Beyond,
    /// What has come from the other neighbour, and is for it.
    Transit,
}

/// Which slots there are in a ring of so many hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    hosts: usize,
}

impl Layout {
    /// The one of a ring of two to five hosts.
    pub fn new(hosts: usize) -> Layout {
        Layout { hosts }
    }

    /// Hosts of the ring.
    pub fn hosts(self) -> usize {
        self.hosts
    }

    /// The sides on which there is a neighbour who is not also the one on the other side.
    pub fn sides(self) -> impl Iterator<Item = Side> {
        [Side::Right, Side::Left].into_iter().take(if self.hosts == 2 { 1 } else { 2 })
    }

    /// Whether neighbours on this side pass on what is for those beyond them. Of four hosts, the opposite one is reached to the
    /// right.
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

    /// Bytes of an area.
    pub fn bytes(self) -> usize {
        2 * self.half()
    }

    fn half(self) -> usize {
        self.sides().map(|side| self.slots(side) * ROUND).sum()
    }

    /// Where what is for a neighbour lies in a round.
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

/// An area, of this rank or a neighbour.
pub struct Area {
    segment: Segment,
    source: InWindow,
    sink: OutWindow,
    layout: Layout,
}

impl Area {
    /// An area that is in a segment. None if it is not as large as it has to be.
    pub fn new(segment: Segment, layout: Layout) -> Option<Area> {
        let (source, sink) = (segment.source(), segment.sink());
        (segment.size() == layout.bytes() as u64).then_some(Area { segment, source, sink, layout })
    }

    /// Its memory. Its lock has who writes to its rank's blocks, and the rank itself once nobody may.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Nobody can open it any more.
    pub fn seal(&mut self) {
        self.segment.seal();
    }

    /// Puts bytes in a slot, at most [`ROUND`].
    pub fn put(&self, to: Side, slot: Slot, round: usize, bytes: ForeignBytes) {
        self.sink.write(self.layout.offset(to, slot, round), bytes);
    }

    /// What is in a slot.
    pub fn bytes(&self, to: Side, slot: Slot, round: usize, len: usize) -> ForeignBytes {
        self.source.foreign(self.layout.offset(to, slot, round), len)
    }

    /// Copies out what is in a slot.
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
