//! Small allgathers: every member of a group gives a block and gets the blocks of all members.
//!
//! A group has one rank on each host of the ring. Blocks travel from neighbour to neighbour in both directions, half of
//! the way round in each, through allgather mailboxes (`queue::board`). A rank looks at the mailboxes only while it
//! takes part in an allgather itself: a member that waits for a block that this rank has to pass on waits for this
//! rank's own block, too. Where a rank can read the mailboxes of its neighbours (the shortcut `windows`), it sees a
//! block before the neighbour has passed it on. There all ranks share one machine, and blocks name the core on which
//! their rank ran: with more ranks than cores a rank yields only to members of its own core.

use super::direction::{leaving, RIGHTWARD};
use super::group::{Group, Stream, SPAN_MAX};
use crate::bell::Bell;
use crate::error::EndpointError;
use ntbring_queue::{post_max, BoardReader, BoardWriter, CoreId, Posted, PLACE};
use ntbring_ring::layout::BOARDS;
use ntbring_ring::{rank_doorbell, Membership, PathFailure, PeerLoss};
use std::sync::Arc;

/// Maximum number of bytes of a block in any ring; [`crate::Endpoint::block_max`] is the limit of this ring.
pub const BLOCK_MAX: usize = post_max(PLACE.1);

const FAILED: &str = "has failed in a collective";
const OTHER_SIZE: &str = "has called a collective with another size than this one";

/// A rank of the next host in one direction, to which blocks are sent.
struct Onward {
    bell: Bell,
    boards: Vec<BoardWriter>,
}

/// A rank of the previous host in one direction, from which blocks arrive.
struct Origin {
    rank: u32,
    boards: Vec<BoardReader>,
}

/// Returns the core on which this thread runs.
fn current_core() -> CoreId {
    nix::sched::sched_getcpu().map_or(CoreId::default(), CoreId::new)
}

/// All groups of a rank.
pub struct Groups {
    members: Arc<Membership>,
    open: Vec<Group>,
    onward: [Vec<Onward>; 2],
    origin: [Vec<Origin>; 2],
    /// A failure that separates members of every group; all pending blocks fail with it.
    ring_cut: Option<PathFailure>,
    /// Mailboxes that belong to no open group; one bit for each.
    free: u32,
    /// True if free mailboxes were offered for a group that has not been opened yet.
    offered: bool,
    /// Number of allgathers begun.
    pub begun: u64,
    pub doorbells: u64,
}

impl Groups {
    pub fn new(members: &Arc<Membership>) -> Groups {
        let topology = members.topology();
        let me = topology.local_of(members.rank());
        let (mut onward, mut origin) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        let mut boards = BOARDS;
        if let Some(links) = members.links() {
            boards = links[0].boards().min(links[1].boards());
            for rightward in RIGHTWARD.into_iter().filter(|&r| topology.span(r) > 0) {
                let side = leaving(rightward);
                let (to, from) = (links[side as usize], links[side.opposite() as usize]);
                for local in 0..topology.ranks_of(to.neighbour()).len() {
                    let boards = (0..boards).map(|b| to.board_writer(me, local, b)).collect();
                    let bell = Bell::Port(to.side(), to.port(), rank_doorbell(local));
                    onward[usize::from(rightward)].push(Onward { bell, boards });
                }
                for (local, &rank) in topology.ranks_of(from.neighbour()).iter().enumerate() {
                    let boards = (0..boards).map(|b| from.board_reader(local, me, b)).collect();
                    origin[usize::from(rightward)].push(Origin { rank, boards });
                }
            }
        }
        let free = (1 << boards) - 1;
        let (members, open) = (members.clone(), Vec::new());
        Groups { members, open, onward, origin, ring_cut: None, free, offered: false, begun: 0, doorbells: 0 }
    }

    /// Returns the maximum number of open groups.
    pub fn boards(&self) -> u32 {
        self.free.count_ones() + self.open.len() as u32
    }

    fn find(&self, id: u32) -> Result<usize, EndpointError> {
        let found = self.open.iter().position(|g| g.id == id);
        found.ok_or_else(|| EndpointError::Argument(format!("group {id} is not open")))
    }

    /// Makes all allgathers of the groups of a lost rank fail.
    pub fn lose(&mut self, loss: PeerLoss) {
        for group in self.open.iter_mut().filter(|group| group.ranks.contains(&loss.rank())) {
            group.lost.get_or_insert(loss);
        }
    }

    /// Makes all allgathers of all groups fail.
    pub fn cut(&mut self, ring_cut: PathFailure) {
        self.ring_cut.get_or_insert(ring_cut);
    }

    /// Returns the index of a group, or the error with which its allgathers fail.
    fn alive(&self, id: u32) -> Result<usize, EndpointError> {
        let i = self.find(id)?;
        match (self.open[i].lost, self.ring_cut) {
            (Some(loss), _) => Err(loss.into()),
            (None, Some(ring_cut)) => Err(EndpointError::RingCut(ring_cut)),
            (None, None) => Ok(i),
        }
    }

    /// Returns a line for each incomplete allgather.
    pub fn describe(&self) -> Vec<String> {
        let waits = |g: &&Group| !g.is_complete();
        let line = |g: &Group| {
            format!(
                "collective of communicator {}: nothing from its neighbours, ranks {:?}, or from behind them",
                g.id,
                g.missing()
            )
        };
        self.open.iter().filter(waits).map(line).collect()
    }

    /// Returns the ranks whose parts of small allgathers are awaited.
    pub fn awaited(&self) -> impl Iterator<Item = u32> + '_ {
        self.open.iter().filter(|group| !group.is_complete()).flat_map(Group::missing)
    }

    /// Takes the blocks that have arrived for a group and passes them on. Returns true if there was any.
    #[inline]
    fn look(&mut self, i: usize) -> Result<bool, EndpointError> {
        let group = &mut self.open[i];
        let mut any = false;
        for (d, stream) in group.streams.iter_mut().enumerate() {
            let mut left = stream.missing;
            while left != 0 {
                let place = left.trailing_zeros() as usize;
                left &= left - 1;
                let origin = &self.origin[d][stream.from];
                let board = &origin.boards[group.board];
                let wrong = |error| EndpointError::Corrupt { from: format!("rank {}", origin.rank), error };
                let (mut board, mut at) = (board, place);
                let mut found = board.look(place).map_err(wrong)?;
                if let (None, Some(view), 1..) = (found, &stream.view, place) {
                    (board, at) = (view, place - 1);
                    found = board.look(at).map_err(wrong)?;
                    stream.seen_early |= u64::from(found.is_some()) << place;
                }
                let Some(posted) = found else { continue };
                any = true;
                stream.missing &= !(1 << place);
                stream.posted[place] = posted;
                if place + 1 < stream.span {
                    let bytes = board.foreign(at, posted.len);
                    let onward = &self.onward[d][stream.to];
                    onward.boards[group.board].repost(place + 1, bytes, posted);
                    onward.bell.ring();
                    self.doorbells += 1;
                }
            }
        }
        Ok(any)
    }
    /// Returns the mailboxes that this rank offers for a new group, one bit for each; none while another offer is
    /// pending. The members of the new group combine their offers by AND, and then each calls [`Groups::open`].
    pub fn offer(&mut self) -> u32 {
        match self.offered {
            true => 0,
            false => {
                self.offered = self.free != 0;
                self.free
            }
        }
    }

    /// Opens a group on the first mailbox that all its members have offered (`all`); this rank has offered `mine`.
    /// `ranks` are the members in the order of their hosts, one on each, including this rank; `loss` is that of a
    /// member, if any is lost. Returns false if there is no common mailbox.
    pub fn open(
        &mut self,
        id: u32,
        ranks: &[u32],
        (mine, all): (u32, u32),
        loss: Option<PeerLoss>,
    ) -> Result<bool, EndpointError> {
        if mine != 0 {
            self.offered = false;
        }
        let t = self.members.topology();
        let known = ranks.iter().all(|&r| (r as usize) < t.size());
        let in_order = known && ranks.len() == t.hosts() && ranks.iter().enumerate().all(|(h, &r)| t.host_of(r) == h);
        let me = ranks.iter().position(|&r| r == self.members.rank());
        let (true, Some(me)) = (in_order, me) else {
            return Err(EndpointError::Argument(format!("group {id} is not one rank of each host: {ranks:?}")));
        };
        if self.find(id).is_ok() {
            return Err(EndpointError::Argument(format!("group {id} is open already")));
        }
        if all & !(mine & self.free) != 0 {
            let text = format!("mailboxes {all:#x} for group {id}, of {mine:#x} that were offered");
            return Err(EndpointError::Argument(text));
        }
        if all == 0 {
            return Ok(false);
        }
        let board = all.trailing_zeros() as usize;
        self.free &= !(1 << board);
        let streams = RIGHTWARD.map(|rightward| {
            let side = leaving(rightward);
            let local = |side| t.local_of(ranks[t.neighbour(me, side)]);
            let (span, to, from) = (t.span(rightward), local(side), local(side.opposite()));
            let link = self.members.links().map(|links| links[side.opposite() as usize]);
            let mut view = link.and_then(|link| link.board_view(board));
            if let Some(view) = &mut view {
                view.follow(&self.origin[usize::from(rightward)][from].boards[board]);
            }
            Stream { span, to, from, view, seen_early: 0, missing: 0, posted: [Posted::default(); SPAN_MAX] }
        });
        let mine = Vec::with_capacity(self.members.block_max());
        let ranks = ranks.to_vec();
        let core = CoreId::default();
        let (has_block, looks_without_yield, lost) = (false, 0, loss);
        self.open.push(Group { id, board, ranks, me, streams, mine, has_block, core, looks_without_yield, lost });
        Ok(true)
    }

    /// Closes a group in which no further allgather will begin.
    pub fn close(&mut self, id: u32) {
        if let Ok(i) = self.find(id) {
            let group = self.open.swap_remove(i);
            // After an allgather that was abandoned the contents of the mailbox are unknown, so it is not used again.
            if group.is_complete() {
                self.free |= 1 << group.board;
            }
        }
    }

    /// Begins the next allgather of a group; the previous one must be complete. None: this rank has failed, and the
    /// allgather will fail on all members.
    pub fn begin_allgather(&mut self, id: u32, block: Option<&[u8]>) -> Result<(), EndpointError> {
        let most = self.members.block_max();
        let i = self.alive(id)?;
        let group = &mut self.open[i];
        if block.is_some_and(|b| b.len() > most) || !group.is_complete() {
            let size = block.map_or(0, <[u8]>::len);
            let text = format!("a block of {size} bytes in group {id}, missing those of {:?}", group.missing());
            return Err(EndpointError::Argument(text));
        }
        let same_machine = group.streams.iter().any(|s| s.view.is_some());
        group.begin(block, if same_machine { current_core() } else { CoreId::default() });
        self.begun += 1;
        for (d, stream) in group.streams.iter_mut().enumerate().filter(|(_, s)| s.span > 0) {
            stream.begin();
            self.origin[d][stream.from].boards[group.board].turn();
            let onward = &mut self.onward[d][stream.to];
            onward.boards[group.board].turn();
            onward.boards[group.board].post(0, block.unwrap_or_default(), block.is_none(), group.core);
            onward.bell.ring();
            self.doorbells += 1;
        }
        Ok(())
    }

    /// Returns true once all blocks of an allgather have arrived and been passed on. Calls `moved` for each time that
    /// blocks were found.
    pub fn is_allgathered(&mut self, id: u32, moved: impl Fn()) -> Result<bool, EndpointError> {
        let i = self.alive(id)?;
        // Another thread may wait for another group while this one sleeps in its place, so all groups are served.
        for other in 0..self.open.len() {
            while !self.open[other].is_complete() && self.look(other)? {
                moved();
            }
        }
        Ok(self.open[i].is_complete())
    }

    /// True if the rank may look for missing blocks of a group again without a yield
    /// ([`Group::may_look_without_yield`]).
    pub fn may_look_without_yield(&mut self, id: u32) -> bool {
        self.find(id).is_ok_and(|i| self.open[i].may_look_without_yield())
    }

    /// Copies the blocks of a completed allgather to `to`, in the order of the hosts.
    pub fn end_allgather(&mut self, id: u32, to: &mut [u8]) -> Result<(), EndpointError> {
        let i = self.find(id)?;
        let group = &self.open[i];
        if !group.is_complete() {
            return Err(EndpointError::Argument(format!("blocks are missing in group {id}: {:?}", group.missing())));
        }
        if !group.has_block {
            return Err(group.wrong(group.me, FAILED));
        }
        let (size, count) = (group.mine.len(), group.ranks.len());
        if to.len() != size * count {
            return Err(EndpointError::Argument(format!("{} bytes for {count} blocks of {size}", to.len())));
        }
        let room = |member: usize| member * size..(member + 1) * size;
        to[room(group.me)].copy_from_slice(&group.mine);
        for ((d, stream), rightward) in group.streams.iter().enumerate().zip(RIGHTWARD) {
            for (place, posted) in stream.posted[..stream.span].iter().enumerate() {
                let member = group.origin(rightward, place + 1);
                if posted.failed {
                    return Err(group.wrong(member, FAILED));
                }
                if posted.len != size {
                    return Err(group.wrong(member, OTHER_SIZE));
                }
                let (board, at) = match &stream.view {
                    Some(view) if stream.seen_early >> place & 1 == 1 => (view, place - 1),
                    _ => (&self.origin[d][stream.from].boards[group.board], place),
                };
                board.read(at, &mut to[room(member)]);
            }
        }
        Ok(())
    }
}
