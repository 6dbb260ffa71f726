//! The state of one member of a group in its alltoalls, and the copies that it makes.

use super::area::{Area, Layout, Slot, ROUND};
use super::blocks::Blocks;
use super::card::BlockAddresses;
use crate::error::EndpointError;
use ntbring_host::{KernelCopy, Segment};
use ntbring_ntb::Side;
use ntbring_zerocopy::copy_tuner::{CopyPath, CopyTuner, Outcome};
use ntbring_zerocopy::SingleCopy;
use std::io;
use std::time::Instant;

/// Bounds of the classes of block sizes, in bytes. They follow the sizes of caches; kernel copies win or lose in each
/// class separately.
const CLASSES: [usize; 3] = [32 << 10, 128 << 10, 512 << 10];

fn class(size: usize) -> usize {
    CLASSES.iter().filter(|&&end| size >= end).count()
}

/// The alltoalls of a group, seen by one member.
pub struct Alltoall {
    pub state: State,
    pub layout: Layout,
    /// Indexed by side.
    pub sides: [Neighbour; 2],
    pub mine: Option<Area>,
    /// Smallest block, in bytes, for which kernel copies may be used: first this rank's limit, later the largest of
    /// all members' limits.
    pub kernel_from: Option<u64>,
    /// One A/B tuner for each class of sizes; None if the setting fixes the copy path.
    pub copy_tuners: Option<[CopyTuner; CLASSES.len() + 1]>,
    /// True if the kernel has refused a copy and would refuse it again.
    pub refused: bool,
    /// True if other ranks may be writing to this rank's blocks.
    pub exposed: bool,
    pub current: Option<Current>,
    me: usize,
    /// The classes in which the next alltoall uses kernel copies; one bit for each.
    agreed: u8,
    transit: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No alltoall yet.
    New,
    /// The members exchange the addresses of their areas.
    Addressing,
    /// The members report whether they could open the areas.
    Opening,
    Ready,
    Never,
}

pub struct Neighbour {
    pub rank: u32,
    pub area: Option<Area>,
    kernel_copy: Option<KernelCopy>,
    /// Addresses of the neighbour's outgoing blocks, and of its room for incoming ones.
    from: u64,
    to: u64,
}

/// An alltoall in progress.
pub struct Current {
    pub size: usize,
    pub copy_path: CopyPath,
    pub round: usize,
    /// True once the addresses of all members have arrived.
    pub begun: bool,
    blocks: Blocks,
    /// Time at which this rank was ready. Using it for measurements charges waiting for others to the copy path.
    since: Instant,
    /// True if the duration of this alltoall is a sample for the tuner.
    timed: bool,
}

impl Current {
    pub fn new(blocks: Blocks, size: usize) -> Current {
        Current { size, copy_path: CopyPath::Lane, round: 0, begun: false, blocks, since: Instant::now(), timed: false }
    }

    pub fn rounds(&self) -> usize {
        self.size.div_ceil(ROUND)
    }

    /// Returns the offset in a block at which a round's bytes begin, and their number.
    fn slice(&self, round: usize) -> (usize, usize) {
        let at = round * ROUND;
        (at, ROUND.min(self.size - at))
    }
}

impl Alltoall {
    /// Creates the state of member `me`. `sides` has, by side, the rank of the neighbour and the handle for kernel
    /// copies from and to it.
    pub fn new(
        me: usize,
        hosts: usize,
        sides: [(u32, Option<KernelCopy>); 2],
        single_copy: SingleCopy,
        possible: bool,
    ) -> Alltoall {
        let reached = sides.iter().all(|(_, kernel_copy)| kernel_copy.is_some());
        let tunes_copies = matches!(single_copy, SingleCopy::Auto(_));
        Alltoall {
            state: if possible { State::New } else { State::Never },
            layout: Layout::new(hosts),
            sides: sides.map(|(rank, kernel_copy)| Neighbour { rank, area: None, kernel_copy, from: 0, to: 0 }),
            mine: None,
            kernel_from: single_copy.least().filter(|_| reached).map(|least| least as u64 + 1),
            copy_tuners: tunes_copies.then(|| std::array::from_fn(|_| CopyTuner::of_alltoalls())),
            refused: false,
            exposed: false,
            current: None,
            me,
            agreed: 0,
            transit: Vec::new(),
        }
    }

    /// Returns the member that is `hops` hosts away on a side.
    pub fn member(&self, side: Side, hops: usize) -> usize {
        let hosts = self.layout.hosts();
        (self.me + if side == Side::Right { hops } else { hosts - hops }) % hosts
    }

    fn neighbour(&self, side: Side) -> &Neighbour {
        &self.sides[side as usize]
    }

    /// Returns the classes for which this rank prefers kernel copies, one bit for each.
    pub fn for_kernel(&self) -> u8 {
        match &self.copy_tuners {
            None if self.refused => 0,
            None => u8::MAX,
            Some(copy_tuners) => copy_tuners
                .iter()
                .rev()
                .fold(0, |bits, copy_tuners| bits << 1 | u8::from(copy_tuners.next() == CopyPath::Kernel)),
        }
    }

    /// Sets the copy paths of the next alltoall: a class uses kernel copies only if all members prefer them.
    pub fn agree(&mut self, for_kernel: impl Iterator<Item = u8>) {
        self.agreed = for_kernel.fold(u8::MAX, |all, for_kernel| all & for_kernel);
    }

    /// Ends the set-up: the members have opened all areas, or the group does without.
    pub fn be_ready(&mut self, all: bool) {
        self.state = if all { State::Ready } else { State::Never };
        if !all {
            self.forget_areas();
        }
        self.mine.iter_mut().for_each(Area::seal);
    }

    /// Starts an alltoall and returns this member's addresses for it.
    pub fn set_out(&mut self, mut current: Current) -> BlockAddresses {
        if self.is_for_kernel(current.size) && self.agreed >> class(current.size) & 1 == 1 {
            current.copy_path = CopyPath::Kernel;
        }
        self.put(&current);
        self.exposed = true;
        let (from, to) = (current.blocks.from.address() as u64, current.blocks.to.address() as u64);
        let card = BlockAddresses { size: current.size as u64, from, to };
        self.current = Some(current);
        card
    }

    /// Abandons the current alltoall, if any. Returns true if this rank's blocks must be protected from writers.
    pub fn leave(&mut self) -> bool {
        self.current = None;
        if self.state != State::Ready && self.state != State::Never {
            self.forget_areas();
            self.state = State::New;
        }
        std::mem::take(&mut self.exposed)
    }

    fn forget_areas(&mut self) {
        self.mine = None;
        self.sides.iter_mut().for_each(|side| side.area = None);
    }

    /// Evaluates the addresses of all members. Returns a member whose blocks have another size, if any; then all
    /// members find such a mismatch, and none begins.
    pub fn begin(&mut self, current: &mut Current, addresses: &[BlockAddresses]) -> Option<usize> {
        if let Some(other) = addresses.iter().position(|its| its.size != current.size as u64) {
            self.exposed = false;
            return Some(other);
        }
        current.begun = true;
        for side in Side::BOTH {
            let BlockAddresses { from, to, .. } = addresses[self.member(side, 1)];
            let neighbour = &mut self.sides[side as usize];
            (neighbour.from, neighbour.to) = (from, to);
        }
        let bytes = (current.size * self.layout.hosts()) as u64;
        if let Some(copy_tuners) =
            self.copy_tuners(current.size).filter(|copy_tuners| copy_tuners.next() == current.copy_path)
        {
            copy_tuners.begin(bytes, || current.since);
            current.timed = true;
        }
        None
    }

    /// Restarts the alltoall by copies through areas after the kernel has refused a member a copy.
    pub fn again(&mut self, current: &mut Current) {
        if let Some(copy_tuners) = self.copy_tuners(current.size).filter(|_| current.timed) {
            copy_tuners.refused(Instant::now);
        }
        (current.copy_path, current.round, current.timed) = (CopyPath::Lane, 0, false);
        self.put(current);
    }

    /// Ends an alltoall. Returns the measured result if this ended a trial of the tuner.
    pub fn end(&mut self, current: &Current) -> Option<Outcome> {
        self.exposed = false;
        let bytes = (current.size * self.layout.hosts()) as u64;
        let copy_tuners = self.copy_tuners(current.size)?;
        let outcome = copy_tuners.moved(current.copy_path, bytes, Instant::now);
        if current.timed {
            copy_tuners.end(current.copy_path, Instant::now);
        }
        outcome
    }

    fn copy_tuners(&mut self, size: usize) -> Option<&mut CopyTuner> {
        let tunes_copies = self.is_for_kernel(size);
        self.copy_tuners.as_mut().filter(|_| tunes_copies).map(|copy_tuners| &mut copy_tuners[class(size)])
    }

    fn is_for_kernel(&self, size: usize) -> bool {
        self.kernel_from.is_some_and(|least| size as u64 >= least)
    }

    /// Makes this round's kernel copies: the block for this rank from each neighbour, and the blocks in transit,
    /// which are written to the next neighbour under the lock that `lock` takes. Returns the bytes copied.
    pub fn copy(
        &mut self,
        current: &Current,
        lock: impl Fn(&Segment, u32) -> Result<bool, EndpointError>,
    ) -> io::Result<u64> {
        let blocks = current.blocks;
        let (at, len) = current.slice(current.round);
        let mut transit = std::mem::take(&mut self.transit);
        transit.resize(if self.layout.passes(Side::Right) { ROUND } else { 0 }, 0);
        let mut copied = 0;
        for to in self.layout.sides() {
            let (from, beyond) = (self.neighbour(to.opposite()), self.neighbour(to));
            let gone = || io::Error::from(io::ErrorKind::NotConnected);
            let (kernel_copy, onward) = from.kernel_copy.zip(beyond.kernel_copy).ok_or_else(gone)?;
            let address = |base: u64, of: usize| base + (of * current.size + at) as u64;
            let of = self.member(to.opposite(), 1);
            let own = (address(from.from, self.me), blocks.to.part(of * current.size + at, len));
            copied += len as u64;
            if !self.layout.passes(to) {
                kernel_copy.read(own.0, own.1)?;
            } else {
                let transit = &mut transit[..len];
                kernel_copy.read_both(address(from.from, self.member(to, 1)), transit, own)?;
                let segment = beyond.area.as_ref().ok_or_else(gone)?.segment();
                if !lock(segment, beyond.rank).map_err(io::Error::other)? {
                    return Err(gone());
                }
                let written = onward.write_bytes(address(beyond.to, self.member(to.opposite(), 1)), transit);
                segment.unlock();
                written?;
                copied += 2 * len as u64;
            }
        }
        self.transit = transit;
        Ok(copied)
    }

    /// Copies this round's outgoing blocks into this rank's area, if the alltoall goes through areas.
    pub fn put(&self, current: &Current) {
        let Some(mine) =
            self.mine.as_ref().filter(|_| current.copy_path == CopyPath::Lane && current.round < current.rounds())
        else {
            return;
        };
        let blocks = current.blocks;
        let (at, len) = current.slice(current.round);
        for to in self.layout.sides() {
            let block = |hops| blocks.from.part(self.member(to, hops) * current.size + at, len);
            mine.put(to, Slot::Own, current.round, block(1));
            if self.layout.passes(to) {
                mine.put(to, Slot::Beyond, current.round, block(2));
            }
        }
    }

    /// Copies this round's blocks out of the neighbours' areas, and passes on those in transit.
    pub fn take_own(&self, current: &Current) {
        let (at, len) = current.slice(current.round);
        for to in self.layout.sides() {
            let (Some(mine), Some(area)) = (&self.mine, &self.neighbour(to.opposite()).area) else { continue };
            if self.layout.passes(to) {
                mine.put(to, Slot::Transit, current.round, area.bytes(to, Slot::Beyond, current.round, len));
            }
            let of = self.member(to.opposite(), 1);
            area.take(to, Slot::Own, current.round, current.blocks.to.part(of * current.size + at, len));
        }
    }

    /// Copies the blocks that neighbours passed on in the previous round out of their areas.
    pub fn take_transit(&self, current: &Current) {
        let round = current.round - 1;
        let (at, len) = current.slice(round);
        for to in self.layout.sides().filter(|&to| self.layout.passes(to)) {
            if let Some(area) = &self.neighbour(to.opposite()).area {
                let of = self.member(to.opposite(), 2);
                area.take(to, Slot::Transit, round, current.blocks.to.part(of * current.size + at, len));
            }
        }
    }
}
