//! Peers that are added after the ring was joined: processes outside it.

use super::bell::Bell;
use super::{Endpoint, EndpointError, Event};
use ntbring_host::HostError;
use ntbring_host::{place, HostMemory, Mailbox};
use ntbring_ntb::fabric::Backend;
use ntbring_ntb::NtbError;
use ntbring_ring::guest::{answer, call, GuestAddress, Signs};
use ntbring_ring::Loss;

/// Returns true if the error is a shortage of this process, which cannot open more files.
fn is_own(error: &NtbError) -> bool {
    let own = [libc::EMFILE, libc::ENFILE, libc::ENOMEM];
    matches!(error, NtbError::Host(HostError::Open { cause, .. }) if cause.raw_os_error().is_some_and(|code| own.contains(&code)))
}

/// The processes outside the ring that this one knows.
pub(super) struct Guests {
    pub mailbox: Mailbox,
    known: Vec<Guest>,
    /// Those of them that are leaving.
    leaving: usize,
    /// Those that have not opened the lane to them yet.
    called: Vec<usize>,
}

struct Guest {
    address: GuestAddress,
    bell: Bell,
    /// Of the lane to it, if there is one, and of the one from it.
    to: Option<Signs>,
    from: Option<Signs>,
    /// The memory of the lane to it, until it has opened that: it needs our descriptor.
    unopened: Option<HostMemory>,
    stage: Stage,
}

/// Progress of its departure.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Here,
    /// Nothing more will come, but something may still lie here.
    Leaving(Loss),
    /// All has been looked through since then.
    Through(Loss),
    /// Forgotten.
    Gone(Loss),
    /// By the caller, too: another guest may have its number.
    Dropped(Loss),
}

impl Guest {
    fn has_left(&self) -> bool {
        [&self.to, &self.from].into_iter().flatten().any(Signs::has_left)
    }

    fn is_gone(&self) -> bool {
        self.has_left() || self.address.mailbox.is_gone()
    }

    /// The cause of its loss, if it was lost.
    fn loss(&self, peer: u32) -> Option<Loss> {
        let pid = self.address.mailbox.pid;
        if !self.is_gone() {
            return None;
        }
        // Asked after that: it may have left meanwhile.
        Some(if self.has_left() { Loss::GuestLeft { peer, pid } } else { Loss::GuestDied { peer, pid } })
    }
}

impl Guests {
    pub fn new(mailbox: Mailbox) -> Guests {
        Guests { mailbox, known: Vec::new(), leaving: 0, called: Vec::new() }
    }

    /// The number of a guest among the guests; it becomes known if it was not. The numbers for which `is_awaited` holds are
    /// not given to another.
    fn index(
        &mut self,
        guest: &GuestAddress,
        backend: &dyn Backend,
        is_awaited: impl Fn(usize) -> bool,
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
            // Whoever wants to send to it is told so.
            Err(_) if guest.mailbox.is_gone() => Bell::Carrier,
            Err(error) => return Err(error),
        };
        let new = Guest { address: *guest, bell, to: None, from: None, unopened: None, stage: Stage::Here };
        let free = self.known.iter().enumerate().position(|(i, g)| is_dropped(g) && !is_awaited(i));
        let index = free.unwrap_or(self.known.len());
        match self.known.get_mut(index) {
            Some(dropped) => *dropped = new,
            None => self.known.push(new),
        }
        Ok(index)
    }

    /// The cause of the loss of a peer, if it was lost.
    pub fn loss_of(&self, peer: u32, ranks: usize) -> Option<Loss> {
        match self.known.get((peer as usize).checked_sub(ranks)?)?.stage {
            Stage::Gone(loss) | Stage::Dropped(loss) => Some(loss),
            _ => None,
        }
    }

    /// Tells all of them that nothing will be written or read any more.
    pub fn take_leave(&self) {
        for guest in self.known.iter().filter(|guest| guest.to.is_some() || guest.from.is_some()) {
            [&guest.to, &guest.from].into_iter().flatten().for_each(Signs::leave);
            // Who is gone, or cannot be told, finds out by itself.
            if let Ok(mailbox) = Mailbox::open(&guest.address.mailbox) {
                mailbox.nudge();
                guest.bell.ring();
            }
        }
    }

    /// Gives back the descriptors of lanes that their readers have opened.
    #[cold]
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
}

impl Endpoint {
    /// The address that a process outside the ring needs to send to this rank.
    pub fn guest_address(&self) -> GuestAddress {
        self.members.guest_addresses()[self.members.rank() as usize]
    }

    /// The same of a rank of the job, or of a peer that was added.
    pub fn peer_address(&self, peer: u32) -> Option<GuestAddress> {
        let ranks = self.members.guest_addresses();
        let guest = |i: usize| self.guests.known.get(i).map(|g| g.address);
        ranks.get(peer as usize).copied().or_else(|| guest((peer as usize).checked_sub(ranks.len())?))
    }

    /// Adds a process to which messages can be sent from now on, by the number that is returned:
    /// the job's size or above, the same whenever the same process is added. For a process of this
    /// job it is its rank. None if it has to read its mail first. A process that has ended is lost at once ([`Event::Lost`]).
    pub fn add_peer(&mut self, address: &GuestAddress) -> Result<Option<u32>, EndpointError> {
        let mut ranks = self.members.guest_addresses().iter();
        if let Some(rank) = ranks.position(|a| a.mailbox.token == address.mailbox.token) {
            return Ok(Some(rank as u32));
        }
        let i = self.know(address)?;
        let peer = self.admit(i);
        if matches!(self.guests.known[i].stage, Stage::Gone(_)) {
            return Ok(Some(peer));
        }
        if self.guests.known[i].to.is_none() {
            let (dir, lane) = (&self.settings.host.shm_dir, self.settings.ring.local_lane);
            let made = match call(dir, lane, &self.guest_address(), address) {
                Err(_) if address.mailbox.is_gone() => {
                    self.forget_guest(i, Loss::GuestDied { peer, pid: address.mailbox.pid });
                    return Ok(Some(peer));
                }
                made => made?,
            };
            let Some(made) = made else { return Ok(None) };
            let guest = &mut self.guests.known[i];
            self.out.connect(peer, made.producer, guest.bell.clone());
            guest.to = Some(made.signs);
            guest.unopened = Some(made.memory);
            guest.bell.ring();
            self.guests.called.push(i);
        }
        Ok(Some(peer))
    }

    /// To be called when a peer outside the job is lost and nothing refers to its number any more: another may get it.
    pub fn drop_peer(&mut self, peer: u32) {
        let i = (peer as usize).checked_sub(self.members.topology().size());
        let Some(guest) = i.and_then(|i| self.guests.known.get_mut(i)) else { return };
        if let Stage::Gone(loss) = guest.stage {
            guest.stage = Stage::Dropped(loss);
            self.offers.events.retain(|event| !matches!(event, Event::Lost(loss) if loss.rank() == peer));
        }
    }

    /// Opens the lanes that were announced in the mailbox. A sender that wrote nonsense, or has ended again, is
    /// not this rank's fault.
    #[cold]
    pub(super) fn read_mail(&mut self) -> Result<(), EndpointError> {
        while let Some(note) = self.guests.mailbox.read() {
            let opened = answer(&note).map_err(NtbError::from).and_then(|lane| Ok((self.know(&lane.from)?, lane)));
            let (i, lane) = match opened {
                Ok(found) => found,
                Err(error) if is_own(&error) => return Err(error.into()),
                // It had nothing to say, or it would have waited.
                Err(error @ NtbError::Host(HostError::Open { .. })) => {
                    log::debug!("rank {}: {error}", self.members.rank());
                    continue;
                }
                Err(error) => {
                    log::warn!("rank {}: an announcement was dropped: {error}", self.members.rank());
                    continue;
                }
            };
            if matches!(self.guests.known[i].stage, Stage::Gone(_)) {
                continue;
            }
            let peer = self.admit(i);
            let guest = &mut self.guests.known[i];
            self.inbound.connect(peer, lane.consumer, guest.bell.clone());
            lane.signs.open();
            guest.from = Some(lane.signs);
            // It may be waiting for that to leave.
            guest.bell.ring();
            log::debug!("rank {}: a process outside the ring has become peer {peer}", self.members.rank());
        }
        let due = self.idle.takes_stock();
        if due || self.bulletin.asked() != self.asked {
            self.publish_figures();
        }
        // Those that leave say so at once, those that die do not.
        self.look_for_guests(due);
        Ok(())
    }

    /// Looks who of them has left, or `also_dead`. That some are gone is repeated then: meanwhile the caller may have begun to
    /// wait for one.
    pub(super) fn look_for_guests(&mut self, also_dead: bool) {
        let ranks = self.members.topology().size();
        let gone = self.guests.known.iter().filter(|_| also_dead).find_map(|guest| match guest.stage {
            Stage::Gone(loss) => Some(loss),
            _ => None,
        });
        self.offers.events.extend(gone.map(Event::Lost));
        for (i, guest) in self.guests.known.iter_mut().enumerate().filter(|(_, guest)| guest.stage == Stage::Here) {
            if !also_dead && !guest.has_left() {
                continue;
            }
            if let Some(loss) = guest.loss((ranks + i) as u32) {
                guest.stage = Stage::Leaving(loss);
                self.guests.leaving += 1;
            }
        }
    }

    /// Of a poll that looked everywhere and found nothing: forgets those that were gone at the one before it.
    #[inline]
    pub(super) fn check_guests(&mut self) {
        if self.guests.leaving > 0 {
            self.part_from_guests();
        }
        if !self.guests.called.is_empty() {
            self.guests.close_opened();
        }
    }

    #[cold]
    fn part_from_guests(&mut self) {
        for i in 0..self.guests.known.len() {
            let guest = &mut self.guests.known[i];
            match guest.stage {
                Stage::Here | Stage::Gone(_) | Stage::Dropped(_) => {}
                Stage::Leaving(loss) => guest.stage = Stage::Through(loss),
                Stage::Through(loss) => self.forget_guest(i, loss),
            }
        }
    }

    /// Gives back what belongs to it, and tells the caller.
    fn forget_guest(&mut self, i: usize, loss: Loss) {
        let level = if matches!(loss, Loss::GuestDied { .. }) { log::Level::Warn } else { log::Level::Debug };
        log::log!(level, "rank {}: {loss}", self.members.rank());
        let peer = loss.rank();
        self.out.disconnect(peer);
        self.inbound.disconnect(peer);
        self.credits.lose(peer);
        self.offers.lose(peer);
        self.greetings.lose(peer);
        let Guests { known, leaving, .. } = &mut self.guests;
        let guest = &mut known[i];
        *leaving -= usize::from(matches!(guest.stage, Stage::Leaving(_) | Stage::Through(_)));
        guest.stage = Stage::Gone(loss);
        (guest.to, guest.from, guest.bell, guest.unopened) = (None, None, Bell::Carrier, None);
        self.guests.called.retain(|&called| called != i);
        self.offers.events.push_back(Event::Lost(loss));
        self.idle.busy();
    }

    /// Returns true if a guest has died or left, as far as can be seen right now.
    pub(super) fn is_gone(&self, peer: u32) -> bool {
        let i = (peer as usize).checked_sub(self.members.topology().size());
        i.and_then(|i| self.guests.known.get(i)).is_some_and(Guest::is_gone)
    }

    /// Returns true if everything sent to guests outlives this process, or will never be read. For that
    /// they have to poll.
    pub fn has_reached_guests(&self) -> bool {
        self.unread_guests().all(Guest::is_gone)
    }

    /// Guests that have not opened a lane in which something lies.
    fn unread_guests(&self) -> impl Iterator<Item = &Guest> {
        let ranks = self.members.topology().size();
        let unread = move |(i, g): &(usize, &Guest)| {
            g.to.as_ref().is_some_and(|signs| !signs.is_open()) && self.out.has_used((ranks + i) as u32)
        };
        self.guests.known.iter().enumerate().filter(unread).map(|(_, g)| g)
    }

    /// A line on each of them.
    pub(super) fn describe_guests(&self) -> Vec<String> {
        let line = |g: &Guest| {
            format!("process {} of another job has to call MPI to get what was sent", g.address.mailbox.pid)
        };
        self.unread_guests().map(line).collect()
    }

    /// The number of a guest among the guests, known before or not.
    fn know(&mut self, guest: &GuestAddress) -> Result<usize, NtbError> {
        let ranks = self.members.topology().size();
        self.guests.index(guest, self.members.backend().as_ref(), |i| self.greetings.has_asked((ranks + i) as u32))
    }

    /// Gives the guest a flow and streams, new ones if they were those of another; returns its number as a peer.
    fn admit(&mut self, i: usize) -> u32 {
        let peer = self.members.topology().size() + i;
        self.out.admit(peer);
        self.inbound.admit(peer);
        self.credits.admit(peer);
        if self.guests.known[i].stage == Stage::Here && self.out.is_lost(peer as u32) {
            self.out.renew(peer as u32);
            self.credits.renew(peer as u32);
        }
        peer as u32
    }
}
