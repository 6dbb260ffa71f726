//! Alltoalls of groups whose neighbours can access each other's memory, on rings in which no host is more than two
//! hops away.
//!
//! ```text
//!                   left neighbour              this rank                  right neighbour
//! all members exchange addresses
//!                   for this rank ------------> receive block <----------- for this rank
//!                   for the right one --------> in transit
//!                                               in transit --------------> receive block
//! all members exchange statuses
//! ```
//!
//! Blocks are copied in one of two ways. With kernel copies (`CopyPath::Kernel`), the kernel copies from the sender's
//! blocks to the receiver's. Otherwise (`CopyPath::Lane`), each rank puts its outgoing blocks into its area (`area`)
//! before it sends its addresses, and blocks in transit lie in an area until their destination takes them after the
//! status of the round. The copies are made in rounds, each of which ends with a small allgather (`groups`); blocks
//! that were in transit in one round are taken in the next. For each class of block sizes an A/B tuner
//! (`zerocopy::copy_tuner`) finds the faster way, and all members follow the preferences that were exchanged in the
//! previous alltoall. If the kernel refuses a copy to any member, all members restart and copy through areas.
//!
//! A group that uses this algorithm has no fallback during an alltoall: the loss of a member ends the alltoall with
//! an error on all members, and no member is left waiting for a live one that noticed the loss earlier.
//!
//! Only the kernel writes into another rank's blocks, and only for a rank that holds the lock of the owner's area. A
//! rank that leaves an alltoall before its end takes its own lock and keeps it; after that no other rank writes to
//! its blocks.

use super::area::Area;
use super::blocks::{AlltoallProgress, Blocks};
use super::card::{AreaAddress, BlockRecord, RoundStatus};
use super::groups::Groups;
use super::member::{Alltoall, Current, State};
use crate::error::EndpointError;
use crate::onesided::lock_unless_kept;
use ntbring_host::HostError;
use ntbring_host::Segment;
use ntbring_ntb::Side;
use ntbring_ring::Membership;
use ntbring_zerocopy::copy_tuner::{CopyPath, Outcome};
use ntbring_zerocopy::SingleCopy;
use smallvec::SmallVec;
use std::path::PathBuf;
use std::sync::Arc;

/// Hosts of the largest ring in which no host is more than two hops away.
const HOSTS_MOST: usize = 5;

/// The alltoall state of all open groups.
pub struct Alltoalls {
    members: Arc<Membership>,
    /// Directory of segments' files.
    dir: PathBuf,
    single_copy: SingleCopy,
    /// True if nothing is lost on links.
    trusted: bool,
    /// By group id. An entry is taken out for the duration of a call that works on it.
    of: Vec<(u32, Option<Box<Alltoall>>)>,
    /// Number of alltoalls that have succeeded.
    pub ended: u64,
    /// Bytes copied by the kernel.
    pub copied: u64,
}

impl Alltoalls {
    /// Creates the state of a rank. `dir` is the directory of segments' files; `trusted` if nothing is lost on links.
    pub fn new(members: Arc<Membership>, dir: PathBuf, single_copy: SingleCopy, trusted: bool) -> Alltoalls {
        Alltoalls { members, dir, single_copy, trusted, of: Vec::new(), ended: 0, copied: 0 }
    }

    /// Creates the alltoall state of a group that was opened.
    pub fn open(&mut self, id: u32, ranks: &[u32], me: usize) {
        let t = self.members.topology();
        let rank_on = |side| ranks[t.neighbour(me, side)];
        let sides = Side::BOTH.map(|side| (rank_on(side), self.members.kernel_copy(rank_on(side))));
        // All ranks evaluate these conditions alike, and the loss of a rank meanwhile cannot change them.
        let possible = self.trusted && (2..=HOSTS_MOST).contains(&t.hosts());
        let alltoall = Alltoall::new(me, t.hosts(), sides, self.single_copy, possible);
        self.of.push((id, Some(Box::new(alltoall))));
    }

    pub fn close(&mut self, id: u32) {
        self.of.retain(|(group, _)| *group != id);
    }

    fn place(&mut self, id: u32) -> Option<&mut Option<Box<Alltoall>>> {
        self.of.iter_mut().find(|(group, _)| *group == id).map(|(_, place)| place)
    }

    fn get(&self, id: u32) -> Option<&Alltoall> {
        self.of.iter().find(|(group, _)| *group == id)?.1.as_deref()
    }

    fn get_mut(&mut self, id: u32) -> Option<&mut Alltoall> {
        self.place(id)?.as_deref_mut()
    }

    fn take(&mut self, id: u32) -> Result<Box<Alltoall>, EndpointError> {
        let taken = self.place(id).and_then(Option::take);
        taken.ok_or_else(|| EndpointError::Argument(format!("group {id} is not open")))
    }

    fn put(&mut self, id: u32, alltoall: Box<Alltoall>) {
        if let Some(place) = self.place(id) {
            *place = Some(alltoall);
        }
    }
    /// Begins an alltoall in a group that has no small allgather pending: each member gives a block of `size` bytes
    /// to each other member. The blocks must not be touched until it ends. If `blocks` is None, this rank has failed,
    /// and the alltoall will fail on all members. Returns false if the group cannot use this algorithm.
    pub fn begin(
        &mut self,
        groups: &mut Groups,
        id: u32,
        blocks: Option<Blocks>,
        size: usize,
    ) -> Result<bool, EndpointError> {
        let all = size.checked_mul(self.members.topology().hosts());
        if all.is_none() || blocks.is_some_and(|b| Some(b.from.len()) != all || Some(b.to.len()) != all) {
            return Err(EndpointError::Argument(format!(
                "blocks of a wrong size: expected {} hosts with {size} bytes each",
                self.members.topology().hosts()
            )));
        }
        if self.get(id).is_some_and(|x| x.current.is_some()) {
            return Err(EndpointError::Argument(format!("an alltoall of group {id} is in progress already")));
        }
        let mut x = self.take(id)?;
        let begun = match (x.state, blocks.map(|blocks| Current::new(blocks, size))) {
            (State::Never, _) => Ok(false),
            (_, None) => groups.begin_allgather(id, None).map(|()| true),
            (State::New, Some(current)) => self.send_area_address(groups, id, &mut x, current).map(|()| true),
            (State::Addressing | State::Opening | State::Ready, Some(current)) => {
                self.set_out(groups, id, &mut x, current).map(|()| true)
            }
        };
        self.put(id, x);
        if begun.is_err() {
            self.leave(id);
        }
        begun
    }

    /// Ends an alltoall for this rank, regardless of the other members. After that no other rank writes to its
    /// blocks.
    pub fn leave(&mut self, id: u32) {
        if self.get_mut(id).is_some_and(Alltoall::leave) {
            let (me, mine) = (self.members.rank(), self.get(id).and_then(|x| x.mine.as_ref()));
            if let Some(Err(error)) = mine.map(|mine| lock_unless_kept(&self.members, mine.segment(), me)) {
                log::info!("rank {me} has left an alltoall: {error}");
            }
        }
    }

    /// Advances an alltoall when the most recent small allgather of its group has ended.
    pub fn go_on(&mut self, groups: &mut Groups, id: u32) -> Result<AlltoallProgress, EndpointError> {
        let mut x = self.take(id)?;
        let result = self.advance(groups, id, &mut x);
        self.put(id, x);
        result
    }

    fn send_area_address(
        &mut self,
        groups: &mut Groups,
        id: u32,
        x: &mut Alltoall,
        current: Current,
    ) -> Result<(), EndpointError> {
        let mut area = None;
        if x.sides.iter().all(|side| self.members.is_mappable(side.rank)) {
            match Segment::create(&self.dir, x.layout.bytes() as u64) {
                Ok((segment, at)) => (x.mine, area) = (Area::new(segment, x.layout), Some(at)),
                Err(error) => self.does_without(&error),
            }
        }
        (x.current, x.state) = (Some(current), State::Addressing);
        groups.begin_allgather(id, Some(&AreaAddress { area, kernel_from: x.kernel_from }.write()))
    }

    fn does_without(&self, error: &HostError) {
        log::info!("rank {}: alltoalls use messages: {error}", self.members.rank());
    }

    /// Opens the neighbours' areas. Returns true if they and this rank's own are available.
    fn open_areas(&self, x: &mut Alltoall, areas: &[AreaAddress]) -> bool {
        x.kernel_from = areas.iter().try_fold(0, |most, area| Some(most.max(area.kernel_from?)));
        for side in Side::BOTH {
            let (at, rank) = (areas[x.member(side, 1)].area, x.sides[side as usize].rank);
            let Some(at) = at.filter(|at| at.file.pid == self.members.pid(rank)) else { continue };
            match Segment::open(&at) {
                Ok(segment) => x.sides[side as usize].area = Area::new(segment, x.layout),
                Err(error) => self.does_without(&error),
            }
        }
        x.mine.is_some() && x.sides.iter().all(|side| side.area.is_some())
    }

    /// Sends this rank's addresses to the other members.
    fn set_out(
        &mut self,
        groups: &mut Groups,
        id: u32,
        x: &mut Alltoall,
        current: Current,
    ) -> Result<(), EndpointError> {
        let card = x.set_out(current);
        groups.begin_allgather(id, Some(&card.write()))
    }

    /// Returns all members' records from a small allgather that has ended.
    fn records<const N: usize, T: BlockRecord<N>>(
        &self,
        groups: &mut Groups,
        id: u32,
    ) -> Result<SmallVec<[T; HOSTS_MOST]>, EndpointError> {
        let mut bytes = [[0; N]; HOSTS_MOST];
        let bytes = &mut bytes[..self.members.topology().hosts().min(HOSTS_MOST)];
        groups.end_allgather(id, bytes.as_flattened_mut())?;
        Ok(bytes.iter().map(T::read).collect())
    }

    /// Handles the end of the most recent small allgather.
    fn advance(&mut self, groups: &mut Groups, id: u32, x: &mut Alltoall) -> Result<AlltoallProgress, EndpointError> {
        let Some(current) = x.current.take() else {
            // Unless this rank, and the others with it, has failed, there is nothing to continue.
            groups.end_allgather(id, &mut [])?;
            return Err(EndpointError::Argument(format!("no alltoall is in progress in group {id}")));
        };
        match x.state {
            State::Addressing => {
                let areas = self.records(groups, id)?;
                let ok = self.open_areas(x, &areas);
                (x.current, x.state) = (Some(current), State::Opening);
                groups.begin_allgather(id, Some(&RoundStatus { ok, for_kernel: x.for_kernel() }.write()))?;
                Ok(AlltoallProgress::Pending)
            }
            State::Opening => {
                let all = self.statuses(groups, id, x)?;
                x.be_ready(all);
                match all {
                    true => self.set_out(groups, id, x, current).map(|()| AlltoallProgress::Pending),
                    false => Ok(AlltoallProgress::ByMessages),
                }
            }
            _ => self.next_round(groups, id, x, current),
        }
    }

    fn next_round(
        &mut self,
        groups: &mut Groups,
        id: u32,
        x: &mut Alltoall,
        mut current: Current,
    ) -> Result<AlltoallProgress, EndpointError> {
        let (round, last) = (current.round, current.round == current.rounds());
        let mut ok = true;
        if !current.begun {
            // If one member's addresses are missing, all members know that the alltoall did not begin.
            let addresses = self.records(groups, id).inspect_err(|_| x.exposed = false)?;
            if let Some(other) = x.begin(&mut current, &addresses) {
                return Err(groups.other_size(id, other));
            }
        } else if current.copy_path == CopyPath::Lane || last {
            ok = self.statuses(groups, id, x)?;
        }
        match current.copy_path {
            _ if !ok => {
                x.again(&mut current);
                return begin_status_allgather(groups, id, x, current, true);
            }
            CopyPath::Kernel if !last => match x
                .copy(&current, |segment, owner| lock_unless_kept(&self.members, segment, owner))
            {
                Ok(bytes) => self.copied += bytes,
                Err(error) => {
                    log::info!("rank {}: a kernel copy was refused, using areas instead: {error}", self.members.rank());
                    x.refused = x.copy_tuners.is_none();
                    current.round = current.rounds();
                    return begin_status_allgather(groups, id, x, current, false);
                }
            },
            CopyPath::Lane => {
                if !last {
                    x.take_own(&current);
                }
                if round > 0 {
                    x.take_transit(&current);
                }
            }
            CopyPath::Kernel => {}
        }
        if last {
            if let Some(Outcome { kernel, lane }) = x.end(&current) {
                let (rank, size, gb) = (self.members.rank(), current.size, 1e9);
                log::debug!(
                    "rank {rank}: blocks of {size} bytes: the kernel {:.1} GB/s, ranks {:.1}",
                    kernel / gb,
                    lane / gb
                );
            }
            self.ended += 1;
            return Ok(AlltoallProgress::Done);
        }
        current.round += 1;
        if current.copy_path == CopyPath::Kernel && current.round < current.rounds() {
            // Other groups get a turn, but no synchronisation is needed.
            x.current = Some(current);
            return Ok(AlltoallProgress::Pending);
        }
        x.put(&current);
        begin_status_allgather(groups, id, x, current, true)
    }

    /// Evaluates all members' statuses. Returns true if no member has had an error.
    fn statuses(&self, groups: &mut Groups, id: u32, x: &mut Alltoall) -> Result<bool, EndpointError> {
        let statuses = self.records::<2, RoundStatus>(groups, id)?;
        x.agree(statuses.iter().map(|status| status.for_kernel));
        Ok(statuses.iter().all(|status| status.ok))
    }
}

/// Sends this rank's status to the other members.
fn begin_status_allgather(
    groups: &mut Groups,
    id: u32,
    x: &mut Alltoall,
    current: Current,
    ok: bool,
) -> Result<AlltoallProgress, EndpointError> {
    x.current = Some(current);
    groups.begin_allgather(id, Some(&RoundStatus { ok, for_kernel: x.for_kernel() }.write()))?;
    Ok(AlltoallProgress::Pending)
}
