//! All processes outside the ring that this one knows, and the lanes to and from them.

use super::guest::{Guest, Stage};
use crate::bell::Bell;
use crate::error::EndpointError;
use ntbring_host::HostError;
use ntbring_host::{place, Mailbox};
use ntbring_ntb::fabric::Backend;
use ntbring_ntb::NtbError;
use ntbring_queue::{Consumer, Producer};
use ntbring_ring::guest::{answer, call, GuestAddress};
use ntbring_ring::Loss;
use smallvec::SmallVec;
use std::path::Path;

/// Returns true if the error is a shortage of this process, which cannot open more files.
fn is_own(error: &NtbError) -> bool {
    let own = [libc::EMFILE, libc::ENFILE, libc::ENOMEM];
    matches!(error, NtbError::Host(HostError::Open { cause, .. }) if cause.raw_os_error().is_some_and(|code| own.contains(&code)))
}

/// The processes outside the ring that this one knows. A guest has an index here, and as a peer the number of ranks of
/// the job plus that index.
pub struct Guests {
    mailbox: Mailbox,
    /// This rank.
    me: u32,
    /// Number of ranks of the job.
    ranks: usize,
    known: Vec<Guest>,
    /// Number of guests that are leaving.
    leaving: usize,
    /// Guests that have not opened the lane to them yet.
    called: Vec<usize>,
}

/// The outcome of [`Guests::call`].
pub enum Called {
    /// There is a lane to the guest already, or the guest is gone.
    Before,
    /// A new lane to the guest.
    Lane(Producer, Bell),
    /// The guest's mailbox is full until it reads it.
    Full,
    /// The guest has died.
    Died(Loss),
}

impl Guests {
    /// Creates the state of rank `me` in a job of `ranks`.
    pub fn new(mailbox: Mailbox, me: u32, ranks: usize) -> Guests {
        Guests { mailbox, me, ranks, known: Vec::new(), leaving: 0, called: Vec::new() }
    }

    /// Returns the number of a guest as a peer.
    pub fn peer(&self, i: usize) -> u32 {
        (self.ranks + i) as u32
    }

    fn of(&self, peer: u32) -> Option<&Guest> {
        self.known.get((peer as usize).checked_sub(self.ranks)?)
    }

    /// Returns the address of a guest.
    pub fn address(&self, peer: u32) -> Option<GuestAddress> {
        self.of(peer).map(|guest| guest.address)
    }

    /// Returns the index of a guest; it becomes known if it was not. The numbers of peers for which `is_awaited` holds
    /// are not given to another.
    pub fn know(
        &mut self,
        guest: &GuestAddress,
        backend: &dyn Backend,
        is_awaited: impl Fn(u32) -> bool,
    ) -> Result<usize, NtbError> {
        let is_dropped = |g: &Guest| matches!(g.stage, Stage::Dropped(_));
        let is_it = |g: &Guest| g.address.mailbox.token == guest.mailbox.token && !is_dropped(g);
        if let Some(i) = self.known.iter().position(is_it) {
            return Ok(i);
        }
        if guest.place != place() {
            return Err(NtbError::GuestElsewhere { pid: guest.mailbox.pid });
        }
        let bell = match backend.bells(&guest.host) {
            Ok(bells) => Bell::Foreign(bells, guest.doorbell as usize),
            // A sender learns that the guest is lost.
            Err(_) if guest.mailbox.is_gone() => Bell::Carrier,
            Err(error) => return Err(error),
        };
        let new = Guest { address: *guest, bell, to: None, from: None, unopened: None, stage: Stage::Here };
        let is_free = |(i, g): (usize, &Guest)| is_dropped(g) && !is_awaited(self.peer(i));
        let index = self.known.iter().enumerate().position(is_free).unwrap_or(self.known.len());
        match self.known.get_mut(index) {
            Some(dropped) => *dropped = new,
            None => self.known.push(new),
        }
        Ok(index)
    }

    /// True if a guest has not left, as far as was seen.
    pub fn is_here(&self, i: usize) -> bool {
        self.known[i].stage == Stage::Here
    }

    /// True if a guest is gone and forgotten.
    pub fn is_forgotten(&self, i: usize) -> bool {
        matches!(self.known[i].stage, Stage::Gone(_))
    }

    /// Returns the cause of the loss of a peer, if it was lost.
    pub fn loss_of(&self, peer: u32) -> Option<Loss> {
        match self.of(peer)?.stage {
            Stage::Gone(loss) | Stage::Dropped(loss) => Some(loss),
            _ => None,
        }
    }

    /// Creates a lane of `lane` bytes to a guest, if there is none, and announces it; `me` is the address of this
    /// process, and `dir` the directory of the lane's file.
    pub fn call(&mut self, i: usize, me: &GuestAddress, dir: &Path, lane: u64) -> Result<Called, EndpointError> {
        let peer = self.peer(i);
        let guest = &mut self.known[i];
        if matches!(guest.stage, Stage::Gone(_)) || guest.to.is_some() {
            return Ok(Called::Before);
        }
        let mailbox = &guest.address.mailbox;
        let made = match call(dir, lane, me, &guest.address) {
            Err(_) if mailbox.is_gone() => return Ok(Called::Died(Loss::GuestDied { peer, pid: mailbox.pid })),
            made => made.map_err(NtbError::from)?,
        };
        let Some(made) = made else { return Ok(Called::Full) };
        guest.to = Some(made.signs);
        guest.unopened = Some(made.memory);
        guest.bell.ring();
        self.called.push(i);
        Ok(Called::Lane(made.producer, guest.bell.clone()))
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
        backend: &dyn Backend,
        is_awaited: impl Fn(u32) -> bool,
    ) -> Result<Option<(usize, Consumer, Bell)>, EndpointError> {
        while let Some(note) = self.mailbox.read() {
            let lane = answer(&note).map_err(NtbError::from);
            let opened = lane.and_then(|lane| Ok((self.know(&lane.from, backend, &is_awaited)?, lane)));
            let (i, lane) = match opened {
                Ok(found) => found,
                Err(error) if is_own(&error) => return Err(error.into()),
                // It had sent nothing, or it would have waited.
                Err(error @ NtbError::Host(HostError::Open { .. })) => {
                    log::debug!("rank {}: {error}", self.me);
                    continue;
                }
                Err(error) => {
                    log::warn!("rank {}: an announcement was dropped: {error}", self.me);
                    continue;
                }
            };
            if self.is_forgotten(i) {
                continue;
            }
            let guest = &mut self.known[i];
            lane.signs.open();
            guest.from = Some(lane.signs);
            // It may be waiting for that to leave.
            guest.bell.ring();
            let bell = guest.bell.clone();
            log::debug!("rank {}: a process outside the ring has become peer {}", self.me, self.peer(i));
            return Ok(Some((i, lane.consumer, bell)));
        }
        Ok(None)
    }

    /// Looks for guests that have left, or, if `also_dead`, have died. Returns the loss of a guest that is gone, if
    /// `also_dead`, to be reported again: the caller may have begun to wait for it.
    pub fn look(&mut self, also_dead: bool) -> Option<Loss> {
        let gone = self.known.iter().filter(|_| also_dead).find_map(|guest| match guest.stage {
            Stage::Gone(loss) => Some(loss),
            _ => None,
        });
        for (i, guest) in self.known.iter_mut().enumerate().filter(|(_, guest)| guest.stage == Stage::Here) {
            if !also_dead && !guest.has_left() {
                continue;
            }
            if let Some(loss) = guest.loss((self.ranks + i) as u32) {
                guest.stage = Stage::Leaving(loss);
                self.leaving += 1;
            }
        }
        gone
    }

    /// True if [`Guests::settle`] may have anything to do.
    #[inline]
    pub fn is_changing(&self) -> bool {
        self.leaving > 0 || !self.called.is_empty()
    }

    /// To be called after a poll that looked everywhere and found nothing. Returns the guests to be forgotten now:
    /// those that were gone at the previous such poll.
    #[cold]
    pub fn settle(&mut self) -> SmallVec<[(usize, Loss); 2]> {
        self.close_opened();
        let mut over = SmallVec::new();
        for (i, guest) in self.known.iter_mut().enumerate() {
            match guest.stage {
                Stage::Here | Stage::Gone(_) | Stage::Dropped(_) => {}
                Stage::Leaving(loss) => guest.stage = Stage::Through(loss),
                Stage::Through(loss) => over.push((i, loss)),
            }
        }
        over
    }

    /// Gives back the descriptors of lanes that their readers have opened.
    fn close_opened(&mut self) {
        let known = &mut self.known;
        self.called.retain(|&i| {
            let waits = known[i].to.as_ref().is_some_and(|signs| !signs.is_open());
            if !waits {
                known[i].unopened = None;
            }
            waits
        });
    }

    /// Forgets the lanes of a guest that is lost.
    pub fn forget(&mut self, i: usize, loss: Loss) {
        let level = if matches!(loss, Loss::GuestDied { .. }) { log::Level::Warn } else { log::Level::Debug };
        log::log!(level, "rank {}: {loss}", self.me);
        let guest = &mut self.known[i];
        self.leaving -= usize::from(matches!(guest.stage, Stage::Leaving(_) | Stage::Through(_)));
        guest.stage = Stage::Gone(loss);
        (guest.to, guest.from, guest.bell, guest.unopened) = (None, None, Bell::Carrier, None);
        self.called.retain(|&called| called != i);
    }

    /// Allows another guest to get the number of a lost one. Returns false if there is no such lost guest.
    pub fn drop_peer(&mut self, peer: u32) -> bool {
        let i = (peer as usize).checked_sub(self.ranks);
        let Some(guest) = i.and_then(|i| self.known.get_mut(i)) else { return false };
        let Stage::Gone(loss) = guest.stage else { return false };
        guest.stage = Stage::Dropped(loss);
        true
    }

    /// Returns true if a guest has died or left, as far as can be seen right now.
    pub fn is_gone(&self, peer: u32) -> bool {
        self.of(peer).is_some_and(Guest::is_gone)
    }

    /// Returns true if everything sent to guests outlives this process, or will never be read. For that they have to
    /// poll. `has_used` is true for peers to which something was sent.
    pub fn has_reached_all(&self, has_used: impl Fn(u32) -> bool) -> bool {
        self.unread(has_used).all(Guest::is_gone)
    }

    /// Returns the guests that have not opened a lane in which something lies.
    fn unread(&self, has_used: impl Fn(u32) -> bool) -> impl Iterator<Item = &Guest> {
        let unread = move |(i, g): &(usize, &Guest)| {
            g.to.as_ref().is_some_and(|signs| !signs.is_open()) && has_used(self.peer(*i))
        };
        self.known.iter().enumerate().filter(unread).map(|(_, g)| g)
    }

    /// Returns a line on each guest that has not opened a lane in which something lies.
    pub fn describe(&self, has_used: impl Fn(u32) -> bool) -> Vec<String> {
        let line = |g: &Guest| {
            format!("process {} of another job has to call MPI to get what was sent", g.address.mailbox.pid)
        };
        self.unread(has_used).map(line).collect()
    }

    /// Tells all guests that nothing will be written or read any more.
    pub fn take_leave(&self) {
        for guest in self.known.iter().filter(|guest| guest.to.is_some() || guest.from.is_some()) {
            [&guest.to, &guest.from].into_iter().flatten().for_each(ntbring_ring::guest::Signs::leave);
            // A guest that is gone, or cannot be told, finds out by itself.
            if let Ok(mailbox) = Mailbox::open(&guest.address.mailbox) {
                mailbox.nudge();
                guest.bell.ring();
            }
        }
    }
}

#[cfg(test)]
mod tests;
