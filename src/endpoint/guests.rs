//! Peers that are added after the ring was joined: processes outside it.

use super::bell::Bell;
use super::{Endpoint, EndpointError};
use crate::ntb::emu::{EmuHost, ForeignBell, Mailbox};
use crate::ntb::{InWindow, NtbError};
use crate::ring::guest::{answer, call, GuestAddress};
use std::sync::Arc;

/// Whether it is this process that cannot open anything more.
fn is_own(error: &NtbError) -> bool {
    let own = [libc::EMFILE, libc::ENFILE, libc::ENOMEM];
    matches!(error, NtbError::Open { cause, .. } if cause.raw_os_error().is_some_and(|code| own.contains(&code)))
}

/// The processes outside the ring that this one knows.
pub(super) struct Guests {
    pub mailbox: Mailbox,
    known: Vec<Guest>,
}

struct Guest {
    address: GuestAddress,
    bell: Bell,
    /// Where it says that it has opened the lane to it, if there is one.
    opened: Option<InWindow>,
    /// The memory of the lanes between us.
    _lanes: Vec<EmuHost>,
}

impl Guest {
    fn is_gone(&self) -> bool {
        Mailbox::open(&self.address.mailbox).is_err_and(|error| !is_own(&error))
    }
}

impl Guests {
    pub fn new(mailbox: Mailbox) -> Guests {
        Guests { mailbox, known: Vec::new() }
    }

    /// The number of a guest among the guests; it becomes known if it was not.
    fn index(&mut self, guest: &GuestAddress) -> Result<usize, NtbError> {
        if let Some(i) = self.known.iter().position(|g| g.address.mailbox.token == guest.mailbox.token) {
            return Ok(i);
        }
        let bell = Bell::Foreign(Arc::new(ForeignBell::open(&guest.host)?), guest.doorbell as usize);
        self.known.push(Guest { address: *guest, bell, opened: None, _lanes: Vec::new() });
        Ok(self.known.len() - 1)
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
    /// job it is its rank. None if it has to read its mail first.
    pub fn add_peer(&mut self, address: &GuestAddress) -> Result<Option<u32>, EndpointError> {
        let mut ranks = self.members.guest_addresses().iter();
        if let Some(rank) = ranks.position(|a| a.mailbox.token == address.mailbox.token) {
            return Ok(Some(rank as u32));
        }
        let i = self.guests.index(address)?;
        let peer = self.admit(i);
        if self.guests.known[i].opened.is_none() {
            let (dir, lane) = (&self.settings.shm_dir, self.settings.local_lane);
            let Some(made) = call(dir, lane, &self.guest_address(), address)? else { return Ok(None) };
            let guest = &mut self.guests.known[i];
            self.out.connect(peer, made.producer, guest.bell.clone());
            guest.opened = Some(made.opened);
            guest._lanes.push(made.memory);
            guest.bell.ring();
        }
        Ok(Some(peer))
    }

    /// Opens the lanes that were announced in the mailbox. Whoever wrote nonsense, or is gone again, is
    /// not this rank's fault.
    #[cold]
    pub(super) fn read_mail(&mut self) -> Result<(), EndpointError> {
        while let Some(note) = self.guests.mailbox.read() {
            let opened = answer(&note).and_then(|lane| Ok((self.guests.index(&lane.from)?, lane)));
            let (i, lane) = match opened {
                Ok(found) => found,
                Err(error) if is_own(&error) => return Err(error.into()),
                // It had nothing to say, or it would have waited.
                Err(error @ NtbError::Open { .. }) => {
                    log::debug!("rank {}: {error}", self.members.rank());
                    continue;
                }
                Err(error) => {
                    log::warn!("rank {}: an announcement was dropped: {error}", self.members.rank());
                    continue;
                }
            };
            let peer = self.admit(i);
            let guest = &mut self.guests.known[i];
            self.inbound.connect(peer, lane.consumer, guest.bell.clone());
            guest._lanes.push(lane.memory);
            lane.opened.store(0, 1);
            // It may be waiting for that to leave.
            guest.bell.ring();
            log::debug!("rank {}: a process outside the ring has become peer {peer}", self.members.rank());
        }
        if self.bulletin.asked() != self.asked || self.idle.takes_stock() {
            self.publish_figures();
        }
        Ok(())
    }

    /// Whether all that was sent to guests is where it outlives this process, or nobody will read it. For that
    /// they have to poll.
    pub fn has_reached_guests(&self) -> bool {
        self.unread_guests().all(Guest::is_gone)
    }

    /// Forgets what was to be sent to guests that are gone: nobody will take it.
    pub(super) fn forget_gone_guests(&mut self) {
        let ranks = self.members.topology().size();
        for (i, _) in self.guests.known.iter().enumerate().filter(|(_, guest)| guest.is_gone()) {
            let peer = (ranks + i) as u32;
            self.out.lose(peer);
            self.offers.lose(peer);
            self.credits.lose(peer);
        }
    }

    /// Guests that have not opened a lane in which something lies.
    fn unread_guests(&self) -> impl Iterator<Item = &Guest> {
        let ranks = self.members.topology().size();
        let unread = move |(i, g): &(usize, &Guest)| {
            g.opened.as_ref().is_some_and(|word| word.load(0) == 0) && self.out.has_used((ranks + i) as u32)
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
