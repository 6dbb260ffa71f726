//! Peers that come and go: processes outside the ring, connection messages between them, and ranks that are lost.

use super::Endpoint;
use crate::arrival::Event;
use crate::dynamic::Called;
use crate::error::EndpointError;
use ntbring_ring::external_peer::ExternalAddress;
use ntbring_ring::PeerLoss;

impl Endpoint {
    /// Returns the address that a process outside the ring needs to send to this rank.
    pub fn external_peer_address(&self) -> ExternalAddress {
        self.members.external_peer_addresses()[self.members.rank() as usize]
    }

    /// Returns that address of a rank of the job, or of a peer that was added.
    pub fn peer_address(&self, peer: u32) -> Option<ExternalAddress> {
        let ranks = self.members.external_peer_addresses();
        ranks.get(peer as usize).copied().or_else(|| self.dynamic.external_peers.address(peer))
    }

    /// Adds a process as a peer, to which messages can be sent from now on. Returns its number: the job's size or
    /// above, the same whenever the same process is added; a process of this job has its rank. Returns None if the
    /// process has to read its mailbox first. A process that has ended is lost at once ([`Event::Lost`]).
    pub fn add_peer(&mut self, address: &ExternalAddress) -> Result<Option<u32>, EndpointError> {
        let mut ranks = self.members.external_peer_addresses().iter();
        if let Some(rank) = ranks.position(|a| a.mailbox.token == address.mailbox.token) {
            return Ok(Some(rank as u32));
        }
        let awaited = |peer| self.dynamic.dpm_messages.has_asked(peer);
        let members = self.members.clone();
        let reach = members.reach();
        let i = self.dynamic.external_peers.know(address, &reach, awaited);
        let peer = self.admit(i);
        let (dir, lane) = (&self.settings.host.shm_dir, self.settings.ring.local_lane);
        match self.dynamic.external_peers.call(i, &reach, dir, lane)? {
            Called::Before => {}
            Called::Lane(lane, bell) => self.out.connect(peer, lane, bell),
            Called::Full => return Ok(None),
            Called::Lost(loss) => self.forget_external_peer(i, loss),
        }
        Ok(Some(peer))
    }

    /// To be called when a peer outside the job is lost and nothing refers to its number any more; another peer may get
    /// the number.
    pub fn drop_peer(&mut self, peer: u32) {
        if self.dynamic.external_peers.drop_peer(peer) {
            self.events.retain(|event| !matches!(event, Event::Lost(loss) if loss.rank() == peer));
        }
    }

    /// Gives the external peer a flow and streams; they are reset if they belonged to another peer. Returns its number
    /// as a peer.
    fn admit(&mut self, i: usize) -> u32 {
        let peer = self.dynamic.external_peers.peer(i);
        self.out.admit(peer as usize);
        self.inbound.admit(peer as usize);
        self.credits.admit(peer as usize);
        if self.dynamic.external_peers.is_here(i) && self.out.is_lost(peer) {
            self.out.renew(peer);
            self.credits.renew(peer);
        }
        peer
    }

    /// Opens the lanes that were announced in the mailbox, and publishes the counters if a tool has asked for them.
    #[cold]
    pub(super) fn read_mail(&mut self) -> Result<(), EndpointError> {
        loop {
            let awaited = |peer| self.dynamic.dpm_messages.has_asked(peer);
            let call = self.dynamic.external_peers.next_call(&self.members.reach(), awaited)?;
            let Some((i, lane, bell)) = call else { break };
            let peer = self.admit(i);
            self.inbound.connect(peer, lane, bell);
        }
        let (due, asked) = (self.waiting.idle.takes_stock(), self.observation.publisher.is_asked());
        if due || asked {
            self.publish_figures(asked);
        }
        // External peers that leave report it at once; those that die do not.
        self.look_for_external_peers(due);
        Ok(())
    }

    /// Looks for external peers that have left, or, if `also_dead`, have died.
    pub(super) fn look_for_external_peers(&mut self, also_dead: bool) {
        self.events.extend(self.dynamic.external_peers.look(also_dead).map(Event::Lost));
    }

    /// To be called after a poll that looked at all lanes and found nothing: removes external peers that were gone at
    /// the previous such poll.
    #[inline]
    pub(super) fn check_external_peers(&mut self) {
        if self.dynamic.external_peers.is_changing() {
            for (i, loss) in self.dynamic.external_peers.settle() {
                self.forget_external_peer(i, loss);
            }
        }
    }

    /// Removes an external peer that is lost, and reports the loss to the caller.
    fn forget_external_peer(&mut self, i: usize, loss: PeerLoss) {
        let peer = loss.rank();
        self.out.disconnect(peer);
        self.inbound.disconnect(peer);
        self.credits.lose(peer);
        self.offers.lose(peer);
        self.dynamic.dpm_messages.lose(peer);
        self.dynamic.external_peers.forget(i, loss);
        self.events.push_back(Event::Lost(loss));
        self.waiting.idle.busy();
    }

    /// Sends a connection message under a tag: a reply if this thread has accepted the peer's request under that tag,
    /// otherwise a request.
    pub fn dpm_send(&mut self, peer: u32, tag: u32, bytes: &[u8]) -> Result<(), EndpointError> {
        let packet = self.dynamic.dpm_messages.dpm_send(peer, tag, bytes.len())?;
        self.out.send_bare(peer, packet, bytes)
    }

    /// Returns the reply if this thread has sent a request under that tag, and otherwise the oldest request of a peer
    /// that is not gone; None if there is none yet. Fails if the peer to which the request was sent is lost.
    pub fn dpm_receive(&mut self, tag: u32) -> Result<Option<Vec<u8>>, EndpointError> {
        let (external_peers, peer_losses) = (&self.dynamic.external_peers, &self.peer_losses);
        let loss_of = |peer| peer_losses.of(peer).or_else(|| external_peers.loss_of(peer));
        self.dynamic.dpm_messages.next(tag, |peer| external_peers.is_gone(peer), loss_of)
    }

    /// Withdraws the requests of this thread under that tag: no peer may accept them any more.
    pub fn withdraw(&mut self, tag: u32) -> Result<(), EndpointError> {
        while let Some((peer, packet)) = self.dynamic.dpm_messages.withdraw(tag) {
            self.out.send_bare(peer, packet, &[])?;
        }
        Ok(())
    }

    /// To be called after a poll that looked at all lanes and found nothing: handles failures that have been observed.
    /// The call does not fail if ranks of other hosts are lost. Requests that wait for a lost rank, and later ones,
    /// stay pending; the caller, which knows all of them, ends them when it gets [`Event::Lost`].
    #[inline]
    pub(super) fn check_losses(&mut self) -> Result<(), EndpointError> {
        match self.waiting.idle.extent() {
            0 => Ok(()),
            extent => self.settle_losses(extent),
        }
    }

    #[cold]
    fn settle_losses(&mut self, extent: usize) -> Result<(), EndpointError> {
        if self.peer_losses.are_due(extent) {
            self.take_losses();
        }
        if let Some(failure) = self.waiting.idle.failures().device {
            return Err(EndpointError::Device(failure));
        }
        // MPICH has state of its own in memory that the ranks of a host share.
        let here = |loss: &PeerLoss| matches!(loss, PeerLoss::Died(dead) if dead.host == self.members.host());
        self.peer_losses.find(here).map_or(Ok(()), |loss| Err(loss.into()))
    }

    fn take_losses(&mut self) {
        let failures = self.waiting.idle.failures();
        self.members.take_down_links_to(&failures.dead);
        for side in self.members.sides_over(failures.outages) {
            self.out.lanes_mut().close(side);
            self.inbound.close(side);
        }
        if let Some(ring_cut) = self.members.ring_cut(&failures) {
            self.groups.cut(ring_cut);
        }
        for loss in self.members.peer_losses(&failures) {
            if !self.peer_losses.add(loss) {
                continue;
            }
            // It is logged now: errors of later calls, which fail because of it, do not name the cause.
            log::warn!("rank {}: {loss}", self.members.rank());
            let rank = loss.rank();
            self.out.lose(rank);
            self.inbound.lose(rank);
            self.credits.lose(rank);
            self.offers.lose(rank);
            self.onesided.remotes.lose(rank);
            self.groups.lose(loss);
            self.events.push_back(Event::Lost(loss));
        }
        self.waiting.idle.busy();
    }
}
