//! Peers that are added after the ring was joined: processes outside it.

use super::bell::Bell;
use super::{Endpoint, EndpointError, Event};
use ntbring_host::HostError;
use ntbring_host::{HostMemory, Mailbox};
use ntbring_ntb::fabric::Backend;
use ntbring_ntb::NtbError;
use ntbring_ring::guest::{answer, call, GuestAddress, Signs};
use ntbring_ring::Loss;

/// Whether it is this process that cannot open anything more.
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
}

struct Guest {
    address: GuestAddress,
    bell: Bell,
    /// Of the lane to it, if there is one, and of the one from it.
    to: Option<Signs>,
    from: Option<Signs>,
    /// The memory of the lanes between us.
    lanes: Vec<HostMemory>,
    stage: Stage,
}

/// How far it is with leaving.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Here,
    /// Nothing more will come, but something may still lie here.
    Leaving(Loss),
    /// All has been looked through since then.
    Through(Loss),
    /// Forgotten.
    Gone(Loss),
}

impl Guest {
    fn has_left(&self) -> bool {
        [&self.to, &self.from].into_iter().flatten().any(Signs::has_left)
    }

    fn is_gone(&self) -> bool {
        self.has_left() || self.address.mailbox.is_gone()
    }

    /// How it was lost, if it was.
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
        Guests { mailbox, known: Vec::new(), leaving: 0 }
    }

    /// The number of a guest among the guests; it becomes known if it was not.
    fn index(&mut self, guest: &GuestAddress, backend: &dyn Backend) -> Result<usize, NtbError> {
        if let Some(i) = self.known.iter().position(|g| g.address.mailbox.token == guest.mailbox.token) {
            return Ok(i);
        }
        let bell = match backend.bells(&guest.host) {
            Ok(bells) => Bell::Foreign(bells, guest.doorbell as usize),
            // Whoever wants to send to it is told so.
            Err(_) if guest.mailbox.is_gone() => Bell::Carrier,
            Err(error) => return Err(error),
        };
        let (to, from, lanes) = (None, None, Vec::new());
        self.known.push(Guest { address: *guest, bell, to, from, lanes, stage: Stage::Here });
        Ok(self.known.len() - 1)
    }

    /// How a peer was lost, if it was.
    pub fn loss_of(&self, peer: u32, ranks: usize) -> Option<Loss> {
        match self.known.get((peer as usize).checked_sub(ranks)?)?.stage {
            Stage::Gone(loss) => Some(loss),
            _ => None,
        }
    }

    /// Tells all of them that nothing will be written or read any more.
    pub fn take_leave(&self) {
        self.known.iter().flat_map(|guest| [&guest.to, &guest.from]).flatten().for_each(Signs::leave);
    }
}

impl Endpoint {
    /// What a process outside the ring must know to send to this rank.
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
    /// job it is its rank. None if it has to read its mail first. Who is gone is lost at once ([`Event::Lost`]).
    pub fn add_peer(&mut self, address: &GuestAddress) -> Result<Option<u32>, EndpointError> {
        let mut ranks = self.members.guest_addresses().iter();
        if let Some(rank) = ranks.position(|a| a.mailbox.token == address.mailbox.token) {
            return Ok(Some(rank as u32));
        }
        let i = self.guests.index(address, self.members.backend().as_ref())?;
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
            guest.lanes.push(made.memory);
            guest.bell.ring();
        }
        Ok(Some(peer))
    }

    /// Opens the lanes that were announced in the mailbox. Whoever wrote nonsense, or is gone again, is
    /// not this rank's fault.
    #[cold]
    pub(super) fn read_mail(&mut self) -> Result<(), EndpointError> {
        while let Some(note) = self.guests.mailbox.read() {
            let opened = answer(&note).map_err(NtbError::from).and_then(|lane| {
                let i = self.guests.index(&lane.from, self.members.backend().as_ref())?;
                Ok((i, lane))
            });
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
            guest.lanes.push(lane.memory);
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
        if due {
            self.look_for_guests();
        }
        Ok(())
    }

    /// Looks who of them is gone. That some are is repeated: meanwhile the caller may have begun to wait for one.
    pub(super) fn look_for_guests(&mut self) {
        let ranks = self.members.topology().size();
        let gone = self.guests.known.iter().find_map(|guest| match guest.stage {
            Stage::Gone(loss) => Some(loss),
            _ => None,
        });
        self.offers.events.extend(gone.map(Event::Lost));
        for (i, guest) in self.guests.known.iter_mut().enumerate().filter(|(_, guest)| guest.stage == Stage::Here) {
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
    }

    #[cold]
    fn part_from_guests(&mut self) {
        for i in 0..self.guests.known.len() {
            let guest = &mut self.guests.known[i];
            match guest.stage {
                Stage::Here | Stage::Gone(_) => {}
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
        (guest.to, guest.from, guest.bell) = (None, None, Bell::Carrier);
        guest.lanes.clear();
        self.offers.events.push_back(Event::Lost(loss));
        self.idle.busy();
    }

    /// Whether a guest has died or left, as far as can be seen right now.
    pub(super) fn is_gone(&self, peer: u32) -> bool {
        let i = (peer as usize).checked_sub(self.members.topology().size());
        i.and_then(|i| self.guests.known.get(i)).is_some_and(Guest::is_gone)
    }

    /// Whether all that was sent to guests is where it outlives this process, or nobody will read it. For that
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

    /// Gives the guest a flow and streams; returns its number as a peer.
    fn admit(&mut self, i: usize) -> u32 {
        let peer = self.members.topology().size() + i;
        self.out.admit(peer);
        self.inbound.admit(peer);
        self.credits.admit(peer);
        peer as u32
    }
}
