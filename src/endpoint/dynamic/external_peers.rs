//! All processes outside the ring that this process knows, and the lanes to and from them.

use super::external_peer::{ExternalLane, ExternalPeer, Stage};
use crate::bell::Bell;
use crate::error::EndpointError;
use ntbring_host::HostError;
use ntbring_host::{Mailbox, NoteReader};
use ntbring_ntb::fabric::Bells;
use ntbring_ntb::NtbError;
use ntbring_queue::{Consumer, Producer};
use ntbring_ring::external_peer::{
    create_lane, open_lane, Announcement, Ending, ExternalAddress, ExternalReceiver, Reach, Way,
};
use ntbring_ring::{PeerLoss, FORWARDER_DOORBELL};
use smallvec::SmallVec;
use std::path::Path;
use std::sync::Arc;

/// Returns true if the cause of the error is in this process, which cannot open more files.
fn is_own(error: &NtbError) -> bool {
    matches!(error, NtbError::Host(error) if error.is_exhausted())
}

/// The processes outside the ring that this process knows. An external peer has an index here; its number as a peer is
/// the number of ranks of the job plus that index.
pub struct ExternalPeers {
    mailbox: Mailbox,
    /// This rank.
    me: u32,
    /// Number of ranks of the job.
    ranks: usize,
    known: Vec<ExternalPeer>,
    /// Number of external peers that are leaving.
    leaving: usize,
    /// External peers that have not opened the lane to them yet.
    called: Vec<usize>,
}

/// The outcome of [`ExternalPeers::call`].
pub enum Called {
    /// There is a lane to the external peer already, or the external peer is gone.
    Before,
    /// A new lane to the external peer.
    Lane(Producer, Bell),
    /// The external peer's mailbox is full until it reads it.
    Full,
    /// The external peer has died, or there is no way to it.
    Lost(PeerLoss),
}

impl ExternalPeers {
    /// Creates the state of rank `me` in a job of `ranks`.
    pub fn new(mailbox: Mailbox, me: u32, ranks: usize) -> ExternalPeers {
        ExternalPeers { mailbox, me, ranks, known: Vec::new(), leaving: 0, called: Vec::new() }
    }

    /// Returns the number of an external peer as a peer.
    pub fn peer(&self, i: usize) -> u32 {
        (self.ranks + i) as u32
    }

    fn of(&self, peer: u32) -> Option<&ExternalPeer> {
        self.known.get((peer as usize).checked_sub(self.ranks)?)
    }

    /// Returns the address of an external peer.
    pub fn address(&self, peer: u32) -> Option<ExternalAddress> {
        self.of(peer).map(|external_peer| external_peer.address)
    }

    /// Returns the index of an external peer, which is added if it was not known. The numbers of peers for which
    /// `is_awaited` holds are not given to other processes.
    pub fn know(&mut self, address: &ExternalAddress, reach: &Reach, is_awaited: impl Fn(u32) -> bool) -> usize {
        let is_dropped = |g: &ExternalPeer| matches!(g.stage, Stage::Dropped(_));
        let is_it = |g: &ExternalPeer| g.address.mailbox.token == address.mailbox.token && !is_dropped(g);
        if let Some(i) = self.known.iter().position(is_it) {
            return i;
        }
        let way = reach.way_to(address);
        let new = ExternalPeer { address: *address, way, to: None, from: None, unopened: None, stage: Stage::Here };
        let is_free = |(i, g): (usize, &ExternalPeer)| is_dropped(g) && !is_awaited(self.peer(i));
        let index = self.known.iter().enumerate().position(is_free).unwrap_or(self.known.len());
        match self.known.get_mut(index) {
            Some(dropped) => *dropped = new,
            None => self.known.push(new),
        }
        index
    }

    /// True if an external peer has not left, as far as was seen.
    pub fn is_here(&self, i: usize) -> bool {
        self.known[i].stage == Stage::Here
    }

    /// True if an external peer is gone and its lanes were removed.
    pub fn is_forgotten(&self, i: usize) -> bool {
        matches!(self.known[i].stage, Stage::Gone(_))
    }

    /// Returns the cause of the loss of a peer, if it was lost.
    pub fn loss_of(&self, peer: u32) -> Option<PeerLoss> {
        match self.of(peer)?.stage {
            Stage::Gone(loss) | Stage::Dropped(loss) => Some(loss),
            _ => None,
        }
    }

    /// Creates a lane of `lane` bytes to an external peer, if there is none, and announces it to the process that reads
    /// it: the peer, or a gateway. `dir` is the directory of the lane's file.
    pub fn call(&mut self, i: usize, reach: &Reach, dir: &Path, lane: u64) -> Result<Called, EndpointError> {
        let peer = self.peer(i);
        let external_peer = &mut self.known[i];
        if matches!(external_peer.stage, Stage::Gone(_)) || external_peer.to.is_some() {
            return Ok(Called::Before);
        }
        let address = external_peer.address;
        let (reader, end, host, doorbell) = match external_peer.way {
            Way::None => {
                let pid = address.mailbox.pid;
                return Ok(Called::Lost(PeerLoss::ExternalPeerUnreachable { peer, pid }));
            }
            Way::Direct => (NoteReader::Process, address.mailbox, address.host, address.doorbell as usize),
            Way::Gateway { mailbox, host } => (NoteReader::Gateway, mailbox, host, FORWARDER_DOORBELL),
        };
        let died = Called::Lost(PeerLoss::ExternalPeerDied { peer, pid: address.mailbox.pid });
        let Some(bells) = reach.bells(&host, &end)? else { return Ok(died) };
        let me = reach.me;
        let announcement = Announcement { from: *me, to: address, bell: (me.host, me.doorbell), maker: me.mailbox };
        let made = match create_lane(dir, lane, &announcement, (reader, &end)) {
            Err(_) if end.is_gone() => return Ok(died),
            made => made.map_err(NtbError::from)?,
        };
        let Some(made) = made else { return Ok(Called::Full) };
        let bell = Bell::Foreign(bells, doorbell);
        bell.ring();
        external_peer.to = Some(ExternalLane { state: made.lane_state, bell: bell.clone(), end });
        external_peer.unopened = Some(made.memory);
        self.called.push(i);
        Ok(Called::Lane(made.producer, bell))
    }

    /// True if there may be announcements in the mailbox.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.mailbox.has_news()
    }

    /// Opens the next lane that was announced in the mailbox. Returns the index of its sender, the lane and the
    /// sender's doorbell. An announcement that is invalid, or whose sender has ended again, is dropped.
    pub fn next_call(
        &mut self,
        reach: &Reach,
        is_awaited: impl Fn(u32) -> bool,
    ) -> Result<Option<(usize, Consumer, Bell)>, EndpointError> {
        while let Some(note) = self.mailbox.read(NoteReader::Process) {
            let (i, lane, bells) = match self.open(&note, reach, &is_awaited) {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(error) if is_own(&error) => return Err(error.into()),
                // The sender had sent nothing; otherwise it would have waited.
                Err(error @ NtbError::Host(HostError::Open { .. })) => {
                    log::debug!("rank {}: {error}", self.me);
                    continue;
                }
                Err(error) => {
                    log::warn!("rank {}: an announcement was dropped: {error}", self.me);
                    continue;
                }
            };
            let ExternalReceiver { announcement, consumer, lane_state, .. } = lane;
            let bell = Bell::Foreign(bells, announcement.bell.1 as usize);
            lane_state.open();
            // The maker may wait for the lane to be opened before it leaves.
            bell.ring();
            self.known[i].from = Some(ExternalLane { state: lane_state, bell: bell.clone(), end: announcement.maker });
            log::debug!("rank {}: a process outside the ring has become peer {}", self.me, self.peer(i));
            return Ok(Some((i, consumer, bell)));
        }
        Ok(None)
    }

    /// Opens the lane of a note. Returns the index of its sender, the lane, and the doorbells of its maker's host; None
    /// if the maker has ended, or the sender is lost or cannot be reached. A lane that is not used is refused.
    #[allow(clippy::type_complexity)]
    fn open(
        &mut self,
        note: &[u8],
        reach: &Reach,
        is_awaited: impl Fn(u32) -> bool,
    ) -> Result<Option<(usize, ExternalReceiver, Arc<dyn Bells>)>, NtbError> {
        let lane = open_lane(note)?;
        let Announcement { from, bell, maker, .. } = lane.announcement;
        let bells = match reach.bells(&bell.0, &maker) {
            Ok(Some(bells)) => bells,
            Ok(None) => return Ok(None),
            Err(error) => {
                lane.refuse();
                return Err(error);
            }
        };
        // A sender to which nothing can be sent is none, since it waits for replies.
        let sender = (reach.way_to(&from) != Way::None).then(|| self.know(&from, reach, is_awaited));
        let Some(i) = sender.filter(|i| !self.is_forgotten(*i)) else {
            lane.refuse();
            return Ok(None);
        };
        Ok(Some((i, lane, bells)))
    }

    /// Looks for external peers that have left, or, if `also_dead`, have died. Returns the loss of an external peer
    /// that is gone, if `also_dead`, to be reported again: the caller may have begun to wait for it.
    pub fn look(&mut self, also_dead: bool) -> Option<PeerLoss> {
        let gone = self.known.iter().filter(|_| also_dead).find_map(|external_peer| match external_peer.stage {
            Stage::Gone(loss) => Some(loss),
            _ => None,
        });
        for (i, external_peer) in
            self.known.iter_mut().enumerate().filter(|(_, external_peer)| external_peer.stage == Stage::Here)
        {
            if !also_dead && !external_peer.is_closed() {
                continue;
            }
            if let Some(loss) = external_peer.loss((self.ranks + i) as u32) {
                external_peer.stage = Stage::Leaving(loss);
                self.leaving += 1;
            }
        }
        gone
    }

    /// True if [`ExternalPeers::settle`] may have anything to do.
    #[inline]
    pub fn is_changing(&self) -> bool {
        self.leaving > 0 || !self.called.is_empty()
    }

    /// To be called after a poll that looked at all lanes and found nothing. Returns the external peers to be removed
    /// now: those that were gone at the previous such poll.
    #[cold]
    pub fn settle(&mut self) -> SmallVec<[(usize, PeerLoss); 2]> {
        self.close_opened();
        let mut over = SmallVec::new();
        for (i, external_peer) in self.known.iter_mut().enumerate() {
            match external_peer.stage {
                Stage::Here | Stage::Gone(_) | Stage::Dropped(_) => {}
                Stage::Leaving(loss) => external_peer.stage = Stage::Through(loss),
                Stage::Through(loss) => over.push((i, loss)),
            }
        }
        over
    }

    /// Closes the descriptors of lanes that their readers have opened.
    fn close_opened(&mut self) {
        let known = &mut self.known;
        self.called.retain(|&i| {
            let waits = known[i].to.as_ref().is_some_and(|lane| !lane.state.is_open());
            if !waits {
                known[i].unopened = None;
            }
            waits
        });
    }

    /// Removes the lanes of an external peer that is lost.
    pub fn forget(&mut self, i: usize, loss: PeerLoss) {
        let level =
            if matches!(loss, PeerLoss::ExternalPeerLeft { .. }) { log::Level::Debug } else { log::Level::Warn };
        log::log!(level, "rank {}: {loss}", self.me);
        let external_peer = &mut self.known[i];
        self.leaving -= usize::from(matches!(external_peer.stage, Stage::Leaving(_) | Stage::Through(_)));
        external_peer.stage = Stage::Gone(loss);
        (external_peer.to, external_peer.from, external_peer.unopened) = (None, None, None);
        self.called.retain(|&called| called != i);
    }

    /// Allows another external peer to get the number of a lost one. Returns false if there is no such lost external
    /// peer.
    pub fn drop_peer(&mut self, peer: u32) -> bool {
        let i = (peer as usize).checked_sub(self.ranks);
        let Some(external_peer) = i.and_then(|i| self.known.get_mut(i)) else { return false };
        let Stage::Gone(loss) = external_peer.stage else { return false };
        external_peer.stage = Stage::Dropped(loss);
        true
    }

    /// Returns true if an external peer has died or left, as far as can be seen right now.
    pub fn is_gone(&self, peer: u32) -> bool {
        self.of(peer).is_some_and(ExternalPeer::is_gone)
    }

    /// Returns true if everything sent to external peers outlives this process, or will never be read. The peers have
    /// to poll for that. `produced` returns the number of bytes that the entries sent to a peer occupy in its lane.
    pub fn has_reached_all(&self, produced: impl Fn(u32) -> u64) -> bool {
        self.unread(produced).all(ExternalPeer::is_gone)
    }

    /// Returns the external peers that have to poll before this process may leave.
    fn unread(&self, produced: impl Fn(u32) -> u64) -> impl Iterator<Item = &ExternalPeer> {
        let unread = move |(i, g): &(usize, &ExternalPeer)| !g.has_reached(produced(self.peer(*i)));
        self.known.iter().enumerate().filter(unread).map(|(_, g)| g)
    }

    /// Returns a line on each external peer that has to poll before this process may leave.
    pub fn describe(&self, produced: impl Fn(u32) -> u64) -> Vec<String> {
        let line = |g: &ExternalPeer| {
            let pid = g.address.mailbox.pid;
            match g.way {
                Way::None | Way::Direct => format!("process {pid} of another job has to call MPI to receive its messages"),
                Way::Gateway { mailbox, .. } => format!(
                    "messages for process {pid} of another job on another host are not delivered yet; the gateway is in process {}",
                    mailbox.pid
                ),
            }
        };
        self.unread(produced).map(line).collect()
    }

    /// Informs all external peers that this process writes and reads nothing any more.
    pub fn take_leave(&self) {
        for lane in self.known.iter().flat_map(ExternalPeer::lanes) {
            lane.state.close(Ending::Left, &lane.end);
            lane.bell.ring();
        }
    }
}

#[cfg(test)]
mod tests;
