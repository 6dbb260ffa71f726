//! Peers that are added after the ring was joined: processes outside it.

use super::bell::Bell;
use super::{Endpoint, EndpointError};
use crate::ntb::emu::{EmuHost, ForeignBell, Mailbox};
use crate::ring::guest::{answer, call, GuestAddress};
use crate::ring::{rank_doorbell, Membership};
use crate::settings::Settings;
use std::sync::Arc;

/// The processes outside the ring that this one knows.
pub(super) struct Guests {
    me: GuestAddress,
    pub mailbox: Mailbox,
    known: Vec<Guest>,
}

struct Guest {
    token: u64,
    bell: Bell,
    /// Whether there is a lane to it.
    called: bool,
    /// The memory of the lanes between us.
    _lanes: Vec<EmuHost>,
}

impl Guests {
    pub fn new(members: &Membership, settings: &Settings) -> Result<Guests, EndpointError> {
        let (mailbox, address) = Mailbox::create(&settings.shm_dir)?;
        let doorbell = rank_doorbell(members.topology().local_of(members.rank())) as u32;
        let me = GuestAddress { mailbox: address, host: members.memory_address(), doorbell };
        Ok(Guests { me, mailbox, known: Vec::new() })
    }

    /// The number of a guest among the guests; it becomes known if it was not.
    fn index(&mut self, guest: &GuestAddress) -> Result<usize, EndpointError> {
        let token = guest.mailbox.token;
        if let Some(i) = self.known.iter().position(|g| g.token == token) {
            return Ok(i);
        }
        let bell = Bell::Foreign(Arc::new(ForeignBell::open(&guest.host)?), guest.doorbell as usize);
        self.known.push(Guest { token, bell, called: false, _lanes: Vec::new() });
        Ok(self.known.len() - 1)
    }
}

impl Endpoint {
    /// What a process outside the ring must know to send to this rank.
    pub fn guest_address(&self) -> GuestAddress {
        self.guests.me
    }

    /// Adds a process to which messages can be sent from now on, by the number that is returned:
    /// the job's size or above, the same whenever the same process is added. For this process
    /// itself it is its rank.
    pub fn add_peer(&mut self, address: &GuestAddress) -> Result<u32, EndpointError> {
        if address.mailbox.token == self.guests.me.mailbox.token {
            return Ok(self.members.rank());
        }
        let i = self.guests.index(address)?;
        let peer = self.admit(i);
        if !self.guests.known[i].called {
            let (dir, lane) = (&self.settings.shm_dir, self.settings.local_lane);
            let (memory, producer) = call(dir, lane, &self.guests.me, address)?;
            let guest = &mut self.guests.known[i];
            self.out.connect(peer, producer, guest.bell.clone());
            guest.called = true;
            guest._lanes.push(memory);
            guest.bell.ring();
        }
        Ok(peer)
    }

    /// Opens the lanes that were announced in the mailbox.
    #[cold]
    pub(super) fn read_mail(&mut self) -> Result<(), EndpointError> {
        while let Some(note) = self.guests.mailbox.read() {
            // Whoever wrote nonsense, or is gone again, is not this rank's fault.
            match answer(&note) {
                Ok((address, memory, consumer)) => {
                    let i = self.guests.index(&address)?;
                    let peer = self.admit(i);
                    let guest = &mut self.guests.known[i];
                    self.inbound.connect(peer, consumer, guest.bell.clone());
                    guest._lanes.push(memory);
                    log::debug!("rank {}: a process outside the ring has become peer {peer}", self.members.rank());
                }
                Err(error) => log::warn!("rank {}: an announcement was dropped: {error}", self.members.rank()),
            }
        }
        Ok(())
    }

    /// Gives the guest a flow and streams; returns its number as a peer.
    fn admit(&mut self, i: usize) -> u32 {
        let peer = self.members.topology().size() + i;
        self.out.admit(peer);
        self.inbound.admit(peer);
        peer as u32
    }
}
