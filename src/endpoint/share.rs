//! Small collectives: everybody in a group gives a block, and gets all of them.
//!
//! A group has one rank on each host of the ring. Blocks go from neighbour to neighbour, both ways, half
//! of the way round each. Whoever gets one passes it on at once, even if it has not given its own yet, so
//! a sharing takes no longer than a block that goes the farthest way after the last one was given.

use super::arrival::Block;
use super::wire::Pass;
use super::{Endpoint, EndpointError};
use smallvec::SmallVec;

/// The most bytes of a block: fits into every lane.
pub const BLOCK_MAX: usize = 512;

/// The most groups that others may have begun to use before this rank does.
const UNKNOWN_MAX: usize = 1024;

type Bytes = SmallVec<[u8; 64]>;

#[derive(Default)]
struct Member {
    /// Those of the current sharing and the next one, by the parity of their number. None: it has failed.
    blocks: [Option<Bytes>; 2],
    /// How many it has given, as far as this rank has got them.
    given: u32,
}

/// Neighbours on the ring, each in the direction to which it passes on.
struct Group {
    id: u32,
    /// In the order of the hosts; empty until this rank has opened the group.
    ranks: Vec<u32>,
    me: usize,
    members: Vec<Member>,
    /// The number of the current sharing.
    turn: u32,
    /// Blocks of it that have not come.
    missing: usize,
    /// Blocks that came before the group was opened.
    early: Vec<(u32, Pass, Bytes)>,
}

/// All groups of a rank.
#[derive(Default)]
pub(super) struct Groups {
    by_id: Vec<Group>,
    /// Sharings that this rank has begun.
    pub begun: u64,
}

impl Group {
    fn new(id: u32) -> Group {
        let (ranks, members, early) = (Vec::new(), Vec::new(), Vec::new());
        Group { id, ranks, me: 0, members, turn: 0, missing: 0, early }
    }

    /// Hosts that a block passes on its way.
    fn reach(&self, rightward: bool) -> usize {
        let size = self.ranks.len();
        if rightward {
            size / 2
        } else {
            (size - 1) / 2
        }
    }

    /// The member that is so many hosts further, at most as many as there are.
    fn next(&self, rightward: bool, hops: usize) -> usize {
        let size = self.ranks.len();
        let i = self.me + if rightward { hops } else { size - hops };
        if i < size {
            i
        } else {
            i - size
        }
    }

    /// The rank of the neighbour on that side.
    fn neighbour(&self, rightward: bool) -> u32 {
        self.ranks[self.next(rightward, 1)]
    }
}

impl Groups {
    fn find(&self, id: u32) -> Result<usize, usize> {
        self.by_id.binary_search_by_key(&id, |g| g.id)
    }

    fn opened(&mut self, id: u32) -> Result<&mut Group, EndpointError> {
        match self.find(id) {
            Ok(i) if !self.by_id[i].ranks.is_empty() => Ok(&mut self.by_id[i]),
            _ => Err(EndpointError::Argument(format!("group {id} is not open"))),
        }
    }

    /// Lines on every sharing that is not complete, here or elsewhere.
    pub fn describe(&self) -> Vec<String> {
        let line = |g: &Group| {
            let lacks = |m: &Member| (m.given.wrapping_sub(g.turn) as i32) < 0;
            let ahead = |m: &Member| m.given.wrapping_sub(g.turn) as i32 > 0;
            let ranks = |wanted: &dyn Fn(&Member) -> bool| {
                g.members.iter().zip(&g.ranks).filter(|(m, _)| wanted(m)).map(|(_, &r)| r).collect::<Vec<u32>>()
            };
            let who = format!("collective {} of communicator {}", g.turn, g.id);
            if g.missing > 0 {
                return Some(format!("{who}: nothing from ranks {:?} yet", ranks(&lacks)));
            }
            let waiting = ranks(&ahead);
            let early = g.early.len();
            (!waiting.is_empty() || early > 0)
                .then(|| format!("{who}: done; in the next one already: ranks {waiting:?}, {early} more blocks"))
        };
        self.by_id.iter().filter_map(line).collect()
    }
}

impl Endpoint {
    /// Opens a group: its ranks in the order of their hosts, one on each, this one among them. All of
    /// them do so, and share in the same order.
    pub fn open_group(&mut self, id: u32, ranks: &[u32]) -> Result<(), EndpointError> {
        let t = self.members.topology();
        let known = ranks.iter().all(|&r| (r as usize) < t.size());
        let in_order = known && ranks.len() == t.hosts() && ranks.iter().enumerate().all(|(h, &r)| t.host_of(r) == h);
        let me = ranks.iter().position(|&r| r == self.members.rank());
        let (true, Some(me)) = (in_order, me) else {
            return Err(EndpointError::Argument(format!("group {id} is not one rank of each host: {ranks:?}")));
        };
        let i = self.groups.find(id).unwrap_or_else(|i| {
            self.groups.by_id.insert(i, Group::new(id));
            i
        });
        let group = &mut self.groups.by_id[i];
        if !group.ranks.is_empty() {
            return Err(EndpointError::Argument(format!("group {id} is open already")));
        }
        group.me = me;
        group.ranks = ranks.to_vec();
        group.members.resize_with(ranks.len(), Member::default);
        for (src, pass, block) in std::mem::take(&mut group.early) {
            self.keep_block(src, pass, block)?;
        }
        Ok(())
    }

    /// Forgets a group that nobody will share in any more.
    pub fn close_group(&mut self, id: u32) {
        if let Ok(i) = self.groups.find(id) {
            self.groups.by_id.remove(i);
        }
    }

    /// Begins the next sharing of a group, in which the one before must be complete. Blocks of all
    /// members must be of the same size, at most [`BLOCK_MAX`] bytes. Without a block, since this rank
    /// has failed, the sharing will fail for everybody.
    pub fn share(&mut self, id: u32, block: Option<&[u8]>) -> Result<(), EndpointError> {
        let group = self.groups.opened(id)?;
        let failed = block.is_none();
        let block = block.unwrap_or_default();
        if block.len() > BLOCK_MAX || group.missing > 0 {
            let text = format!("a block of {} bytes in group {id}, {} missing", block.len(), group.missing);
            return Err(EndpointError::Argument(text));
        }
        group.turn = group.turn.wrapping_add(1);
        let turn = group.turn;
        let mine = &mut group.members[group.me];
        mine.given = turn;
        mine.blocks[turn as usize % 2] = (!failed).then(|| Bytes::from_slice(block));
        group.missing = group.members.iter().filter(|m| m.given != turn).count();
        let sides = [true, false].map(|rightward| {
            let pass = Pass { group: id, turn, hops: 1, rightward, failed };
            (group.reach(rightward) > 0).then(|| (group.neighbour(rightward), pass))
        });
        self.groups.begun += 1;
        for (to, pass) in sides.into_iter().flatten() {
            self.out.pass_on(to, pass, block)?;
        }
        Ok(())
    }

    /// Whether all blocks are there and what this rank has to pass on is on its way.
    #[inline]
    pub fn is_shared(&mut self, id: u32) -> Result<bool, EndpointError> {
        let group = self.groups.opened(id)?;
        if group.missing > 0 {
            return Ok(false);
        }
        let turn = group.turn;
        let sides = [true, false].map(|rightward| group.neighbour(rightward));
        // What belongs to a later turn or another group may wait: nobody needs it to leave this one.
        Ok(sides.iter().all(|&rank| !self.out.has_to_pass(rank, |pass| pass.group == id && pass.turn == turn)))
    }

    /// Copies the blocks of a sharing that is complete to `to`, in the order of the hosts.
    pub fn shared(&mut self, id: u32, to: &mut [u8]) -> Result<(), EndpointError> {
        let group = self.groups.opened(id)?;
        if group.missing > 0 {
            return Err(EndpointError::Argument(format!("{} blocks are missing in group {id}", group.missing)));
        }
        let blocks = group.members.iter().map(|m| m.blocks[group.turn as usize % 2].as_deref());
        let wrong = |src: usize, what| EndpointError::Sharing { src: group.ranks[src], group: id, what };
        if let Some(src) = blocks.clone().position(|b| b.is_none()) {
            return Err(wrong(src, "has failed in a collective"));
        }
        let blocks = blocks.flatten();
        let size = blocks.clone().nth(group.me).map_or(0, <[u8]>::len);
        if let Some(src) = blocks.clone().position(|b| b.len() != size) {
            return Err(wrong(src, "has called a collective with another size than this one"));
        }
        if to.len() != size * group.ranks.len() {
            let text = format!("{} bytes for {} blocks of {size}", to.len(), group.ranks.len());
            return Err(EndpointError::Argument(text));
        }
        for (block, room) in blocks.zip(to.chunks_exact_mut(size.max(1))) {
            room.copy_from_slice(block);
        }
        Ok(())
    }

    /// Takes in the blocks that have arrived before anything else. Whether there were any.
    pub(super) fn take_blocks(&mut self) -> Result<bool, EndpointError> {
        let mut any = false;
        while let Some(block) = self.inbound.take_block()? {
            self.block_arrived(block)?;
            any = true;
        }
        Ok(any)
    }

    /// Takes in a block that has arrived.
    pub(super) fn block_arrived(&mut self, block: Block) -> Result<(), EndpointError> {
        let Block { src, pass, len, .. } = block;
        let wrong = |what| EndpointError::Sharing { src, group: pass.group, what };
        if len > BLOCK_MAX {
            return Err(wrong("shares too much"));
        }
        let mut bytes = Bytes::from_elem(0, len);
        self.inbound.read(block.token.lane, block.offset, &mut bytes);
        self.inbound.release(block.token, 0)?;
        match self.groups.find(pass.group) {
            Ok(i) if !self.groups.by_id[i].ranks.is_empty() => self.keep_block(src, pass, bytes),
            found => {
                let groups = &mut self.groups.by_id;
                if groups.len() >= UNKNOWN_MAX && groups.iter().filter(|g| g.ranks.is_empty()).count() >= UNKNOWN_MAX {
                    return Err(wrong("shares in too many groups that are not open"));
                }
                let i = found.unwrap_or_else(|i| {
                    groups.insert(i, Group::new(pass.group));
                    i
                });
                // Of each member the current one and the next.
                if groups[i].early.len() >= 2 * self.members.topology().hosts() {
                    return Err(wrong("shares too often in a group that is not open"));
                }
                groups[i].early.push((src, pass, bytes));
                Ok(())
            }
        }
    }

    fn keep_block(&mut self, src: u32, pass: Pass, block: Bytes) -> Result<(), EndpointError> {
        let group = self.groups.opened(pass.group)?;
        let (hops, reach) = (usize::from(pass.hops), group.reach(pass.rightward));
        let wrong = |what| EndpointError::Sharing { src, group: pass.group, what };
        if hops == 0 || hops > reach || group.neighbour(!pass.rightward) != src {
            return Err(wrong("passes on what has come another way"));
        }
        let origin = group.next(!pass.rightward, hops);
        let member = &mut group.members[origin];
        // Nobody is further than one sharing ahead, since it needs the block of this rank for that.
        if pass.turn != member.given.wrapping_add(1) || member.given == group.turn.wrapping_add(1) {
            return Err(wrong("shares out of turn"));
        }
        member.given = pass.turn;
        if pass.turn == group.turn {
            group.missing -= 1;
        }
        let onward = (hops < reach).then(|| group.neighbour(pass.rightward));
        if let Some(to) = onward {
            self.out.pass_on(to, Pass { hops: pass.hops + 1, ..pass }, &block)?;
        }
        group.members[origin].blocks[pass.turn as usize % 2] = (!pass.failed).then_some(block);
        Ok(())
    }
}
