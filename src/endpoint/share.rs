//! Small collectives: everybody in a group gives a block, and gets all of them.
//!
//! A group has one rank on each host of the ring. Blocks go from neighbour to neighbour, both ways, half
//! of the way round each, over boards (`queue::board`). A rank looks at them only while it shares itself:
//! whoever waits for what it has to pass on waits for its own block, too.

mod group;

use super::bell::Bell;
use super::{Endpoint, EndpointError};
use group::{Group, Stream, REACH_MAX};
use ntbring_ntb::Side;
use ntbring_queue::{post_max, BoardReader, BoardWriter, Posted, PLACE};
use ntbring_ring::plan::BOARDS;
use ntbring_ring::{rank_doorbell, Loss, Membership, Obstacle};

/// The most bytes of a block in any ring; [`Endpoint::block_max`] is for this one.
pub const BLOCK_MAX: usize = post_max(PLACE.1);

const FAILED: &str = "has failed in a collective";
const OTHER_SIZE: &str = "has called a collective with another size than this one";

/// The directions in which blocks travel; what is kept for each is in this order.
const RIGHTWARD: [bool; 2] = [false, true];

/// The side on which they leave a host.
fn leaving(rightward: bool) -> Side {
    match rightward {
        true => Side::Right,
        false => Side::Left,
    }
}

/// A rank of a neighbouring host to which blocks go that travel in one direction.
struct Onward {
    bell: Bell,
    boards: Vec<BoardWriter>,
}

/// One from which they come.
struct Origin {
    rank: u32,
    boards: Vec<BoardReader>,
}

/// All groups of a rank.
pub(super) struct Groups {
    open: Vec<Group>,
    onward: [Vec<Onward>; 2],
    origin: [Vec<Origin>; 2],
    /// What is between some members of every group: their blocks come no more, whoever waits for them.
    gap: Option<Obstacle>,
    /// Boards of no open group, a bit each.
    free: u32,
    /// Whether free boards were offered for a group that was not opened yet.
    offered: bool,
    /// Sharings that this rank has begun.
    pub begun: u64,
    pub doorbells: u64,
}

impl Groups {
    pub fn new(members: &Membership) -> Groups {
        let topology = members.topology();
        let me = topology.local_of(members.rank());
        let (mut onward, mut origin) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        let mut boards = BOARDS;
        if let Some(links) = members.links() {
            boards = links[0].boards().min(links[1].boards());
            for rightward in RIGHTWARD.into_iter().filter(|&r| topology.reach(r) > 0) {
                let side = leaving(rightward);
                let (to, from) = (links[side as usize], links[side.opposite() as usize]);
                for local in 0..topology.ranks_of(to.neighbour()).len() {
                    let boards = (0..boards).map(|b| to.board_writer(me, local, b)).collect();
                    let bell = Bell::Port(to.port(), rank_doorbell(local));
                    onward[usize::from(rightward)].push(Onward { bell, boards });
                }
                for (local, &rank) in topology.ranks_of(from.neighbour()).iter().enumerate() {
                    let boards = (0..boards).map(|b| from.board_reader(local, me, b)).collect();
                    origin[usize::from(rightward)].push(Origin { rank, boards });
                }
            }
        }
        let free = (1 << boards) - 1;
        Groups { open: Vec::new(), onward, origin, gap: None, free, offered: false, begun: 0, doorbells: 0 }
    }

    /// How many groups can be open at once.
    pub fn boards(&self) -> u32 {
        self.free.count_ones() + self.open.len() as u32
    }

    fn find(&self, id: u32) -> Result<usize, EndpointError> {
        let found = self.open.iter().position(|g| g.id == id);
        found.ok_or_else(|| EndpointError::Argument(format!("group {id} is not open")))
    }

    /// The error of a collective in which a member's block has another size.
    pub fn other_size(&self, id: u32, member: usize) -> EndpointError {
        self.find(id).map_or_else(|error| error, |i| self.open[i].wrong(member, OTHER_SIZE))
    }

    /// Ends sharing in the groups of a rank.
    pub fn lose(&mut self, loss: Loss) {
        for group in self.open.iter_mut().filter(|group| group.ranks.contains(&loss.rank())) {
            group.lost.get_or_insert(loss);
        }
    }

    /// Ends sharing in all groups.
    pub fn cut(&mut self, gap: Obstacle) {
        self.gap.get_or_insert(gap);
    }

    /// The place of a group in which there are sharings.
    fn alive(&self, id: u32) -> Result<usize, EndpointError> {
        let i = self.find(id)?;
        match (self.open[i].lost, self.gap) {
            (Some(loss), _) => Err(loss.into()),
            (None, Some(gap)) => Err(EndpointError::Gap(gap)),
            (None, None) => Ok(i),
        }
    }

    /// Lines on every sharing that is not complete.
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

    /// Takes what has come for a group and passes it on. Whether there was anything.
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
                let Some(posted) = board.look(place).map_err(wrong)? else { continue };
                any = true;
                stream.missing &= !(1 << place);
                stream.posted[place] = posted;
                if place + 1 < stream.reach {
                    let bytes = board.foreign(place, posted.len);
                    let onward = &self.onward[d][stream.to];
                    onward.boards[group.board].repost(place + 1, bytes, posted);
                    onward.bell.ring();
                    self.doorbells += 1;
                }
            }
        }
        Ok(any)
    }
}

impl Endpoint {
    /// The boards that this rank offers for a group, a bit each: none while an offer for another one is
    /// not settled. Those who want to open a group combine what they offer by AND, and then all call
    /// [`Endpoint::open_group`].
    pub fn offer_boards(&mut self) -> u32 {
        match self.groups.offered {
            true => 0,
            false => {
                self.groups.offered = self.groups.free != 0;
                self.groups.free
            }
        }
    }

    /// Opens a group on the first of the boards that all of its members have offered, this one `mine`:
    /// its ranks in the order of their hosts, one on each, this one among them. False if there is no
    /// such board.
    pub fn open_group(&mut self, id: u32, ranks: &[u32], mine: u32, all: u32) -> Result<bool, EndpointError> {
        if mine != 0 {
            self.groups.offered = false;
        }
        let t = self.members.topology();
        let known = ranks.iter().all(|&r| (r as usize) < t.size());
        let in_order = known && ranks.len() == t.hosts() && ranks.iter().enumerate().all(|(h, &r)| t.host_of(r) == h);
        let me = ranks.iter().position(|&r| r == self.members.rank());
        let (true, Some(me)) = (in_order, me) else {
            return Err(EndpointError::Argument(format!("group {id} is not one rank of each host: {ranks:?}")));
        };
        if self.groups.find(id).is_ok() {
            return Err(EndpointError::Argument(format!("group {id} is open already")));
        }
        if all & !(mine & self.groups.free) != 0 {
            let text = format!("boards {all:#x} for group {id}, of {mine:#x} that were offered");
            return Err(EndpointError::Argument(text));
        }
        if all == 0 {
            return Ok(false);
        }
        let board = all.trailing_zeros() as usize;
        self.groups.free &= !(1 << board);
        let streams = RIGHTWARD.map(|rightward| {
            let side = leaving(rightward);
            let local = |side| t.local_of(ranks[t.neighbour(me, side)]);
            let (reach, to, from) = (t.reach(rightward), local(side), local(side.opposite()));
            Stream { reach, to, from, missing: 0, posted: [Posted::default(); REACH_MAX] }
        });
        let mine = Vec::with_capacity(self.block_max());
        let lost = ranks.iter().find_map(|&rank| self.losses.of(rank));
        self.open_exchanges(id, ranks, me);
        let group = Group { id, board, ranks: ranks.to_vec(), me, streams, mine, has_block: false, lost };
        self.groups.open.push(group);
        Ok(true)
    }

    /// Forgets a group that nobody will share in any more.
    pub fn close_group(&mut self, id: u32) {
        self.exchanges.close(id);
        if let Ok(i) = self.groups.find(id) {
            let group = self.groups.open.swap_remove(i);
            // After a sharing that was given up, nobody knows what lies on the board.
            if group.is_complete() {
                self.groups.free |= 1 << group.board;
            }
        }
    }

    /// The most bytes of a block: less where boards would take too much of a window otherwise. The same at all
    /// ranks.
    pub fn block_max(&self) -> usize {
        self.members.block_max()
    }

    /// Begins the next sharing of a group, in which the one before must be complete. Blocks of all
    /// members must be of the same size, at most [`Endpoint::block_max`] bytes. Without a block, since this rank
    /// has failed, the sharing will fail for everybody.
    pub fn share(&mut self, id: u32, block: Option<&[u8]>) -> Result<(), EndpointError> {
        let most = self.block_max();
        let groups = &mut self.groups;
        let i = groups.alive(id)?;
        let group = &mut groups.open[i];
        if block.is_some_and(|b| b.len() > most) || !group.is_complete() {
            let size = block.map_or(0, <[u8]>::len);
            let text = format!("a block of {size} bytes in group {id}, missing those of {:?}", group.missing());
            return Err(EndpointError::Argument(text));
        }
        group.begin(block);
        groups.begun += 1;
        for (d, stream) in group.streams.iter_mut().enumerate().filter(|(_, s)| s.reach > 0) {
            stream.begin();
            groups.origin[d][stream.from].boards[group.board].turn();
            let onward = &mut groups.onward[d][stream.to];
            onward.boards[group.board].turn();
            onward.boards[group.board].post(0, block.unwrap_or_default(), block.is_none());
            onward.bell.ring();
            groups.doorbells += 1;
        }
        Ok(())
    }

    /// Whether all blocks of a sharing are there, and passed on.
    pub fn is_shared(&mut self, id: u32) -> Result<bool, EndpointError> {
        let i = self.groups.alive(id)?;
        // Another thread may wait for another group, and this one sleep in its place.
        for other in 0..self.groups.open.len() {
            while !self.groups.open[other].is_complete() && self.groups.look(other)? {
                self.idle.busy();
            }
        }
        Ok(self.groups.open[i].is_complete())
    }

    /// As [`Endpoint::is_shared`], after so many looks in vain between which this rank does nothing but
    /// spin or yield. As long as it is not true, poll before it is asked again.
    pub fn await_shared(&mut self, id: u32, looks: u32) -> Result<bool, EndpointError> {
        for _ in 0..looks {
            if self.is_shared(id)? {
                return Ok(true);
            }
            // Whoever has something else to do has no time for that.
            if self.has_work() {
                break;
            }
            if self.relay_heat > 0 && self.forward_some() {
                continue;
            }
            self.idle.pause();
        }
        self.is_shared(id)
    }

    /// Copies the blocks of a sharing that is complete to `to`, in the order of the hosts.
    pub fn shared(&mut self, id: u32, to: &mut [u8]) -> Result<(), EndpointError> {
        let i = self.groups.find(id)?;
        let group = &self.groups.open[i];
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
            for (place, posted) in stream.posted[..stream.reach].iter().enumerate() {
                let member = group.origin(rightward, place + 1);
                if posted.failed {
                    return Err(group.wrong(member, FAILED));
                }
                if posted.len != size {
                    return Err(group.wrong(member, OTHER_SIZE));
                }
                let board = &self.groups.origin[d][stream.from].boards[group.board];
                board.read(place, &mut to[room(member)]);
            }
        }
        // What the others sent before may lie in cold lanes, and whoever comes from a barrier may look for it once.
        self.inbound.look_everywhere();
        Ok(())
    }
}
