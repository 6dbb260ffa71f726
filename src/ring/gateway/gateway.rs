//! All tunnels of a host.

use super::mail::{Mail, TunnelPacket};
use super::packet::{Content, Packet, HEAD};
use super::sink::Sink;
use super::source::Source;
use crate::external_peer::{create_lane, open_lane, Announcement, Ending, ExternalAddress};
use crate::membership::Membership;
use crate::protocol::FORWARDER_DOORBELL;
use crate::relay::Route;
use crate::PeerLoss;
use ntbring_host::{HostError, Mailbox, NoteReader, NOTE_MAX};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval between two checks for processes that have died.
const CHECK_EVERY: Duration = Duration::from_millis(500);

/// Number of tunnels that have ended and are remembered, so that late packets do not open them again.
const ENDED_MAX: usize = 256;

/// Maximum number of tunnels that end at a host.
const SINKS_MAX: usize = 4096;

/// A tunnel at its receiving end: the host of the sending end, and the tunnel's number there.
type TunnelId = (usize, u32);

/// The gateway of a host.
pub(crate) struct Gateway {
    members: Arc<Membership>,
    mailbox: Mailbox,
    sources: BTreeMap<u32, Source>,
    sinks: BTreeMap<TunnelId, Sink>,
    ended: VecDeque<(TunnelId, Ending)>,
    /// Announcements that could not be opened because this process has too many open files, or too little memory.
    postponed: Vec<[u8; NOTE_MAX]>,
    /// Number of the next tunnel.
    next: u32,
    /// Time of the latest check.
    checked: Instant,
}

impl Gateway {
    /// Creates the gateway of this process's host.
    pub fn new(members: &Arc<Membership>, mailbox: Mailbox, now: Instant) -> Gateway {
        let (sources, sinks, ended) = (BTreeMap::new(), BTreeMap::new(), VecDeque::new());
        Gateway {
            mailbox,
            postponed: Vec::new(),
            members: members.clone(),
            sources,
            sinks,
            ended,
            next: 0,
            checked: now,
        }
    }

    fn me(&self) -> &ExternalAddress {
        &self.members.external_peer_addresses()[self.members.rank() as usize]
    }

    /// Returns true if [`Gateway::step`] may have anything to do. Costs two loads while there are no tunnels.
    #[inline]
    pub fn has_work(&self, mail: &Mail) -> bool {
        self.mailbox.has_news() || !mail.is_empty() || self.is_in_use()
    }

    /// Returns true if there are tunnels, or announcements that have to be opened again.
    fn is_in_use(&self) -> bool {
        !(self.sources.is_empty() && self.sinks.is_empty() && self.postponed.is_empty())
    }

    /// Opens lanes that were announced, handles packets that have arrived, and moves entries between lanes and tunnels.
    /// Calls `send` with each packet to be sent. `leaving` is true once other hosts may end in the regular way. Returns
    /// the number of packets and entries.
    #[cold]
    pub fn step(&mut self, mail: &Mail, leaving: bool, now: Instant, send: &mut dyn FnMut(TunnelPacket)) -> usize {
        let check = now.saturating_duration_since(self.checked) >= CHECK_EVERY;
        let mut moved = 0;
        if check {
            self.checked = now;
            std::mem::take(&mut self.postponed).into_iter().for_each(|note| self.open_source(note));
        }
        while let Some(note) = self.mailbox.read(NoteReader::Gateway) {
            moved += 1;
            self.open_source(note);
        }
        for packet in mail.take() {
            moved += 1;
            self.arrived(packet, now, send);
        }
        if check && !leaving {
            self.lose_hosts();
        }
        moved + self.step_sources(check, now, send) + self.step_sinks(check, send)
    }

    /// Opens a lane that was announced to the gateway, and a tunnel for it.
    fn open_source(&mut self, note: [u8; NOTE_MAX]) {
        let lane = match open_lane(&note) {
            Ok(lane) => lane,
            Err(error) if error.is_exhausted() => {
                log::warn!("gateway: {error}; it is tried again");
                return self.postponed.push(note);
            }
            // Its maker has ended.
            Err(error @ HostError::Open { .. }) => return log::debug!("gateway: {error}"),
            Err(error) => return log::warn!("gateway: an announcement was dropped: {error}"),
        };
        let Announcement { to, bell, .. } = lane.announcement;
        let bells = match self.members.backend().bells(&bell.0) {
            Ok(bells) => bells,
            Err(error) => {
                log::warn!("gateway: an announcement was dropped: {error}");
                return lane.refuse();
            }
        };
        let rank = self.members.external_peer_addresses().iter().position(|rank| rank.is_near(&to));
        let Some(host) = rank.map(|rank| self.members.topology().host_of(rank as u32)) else {
            log::warn!("gateway: process {} is on a host where this job has no rank", to.mailbox.pid);
            return lane.refuse();
        };
        let (tunnel, pid) = (self.next, to.mailbox.pid);
        log::debug!("gateway: tunnel {tunnel} leads to host {host}, for process {pid} of another job");
        self.sources.insert(tunnel, Source::new(lane, host, bells));
        self.next = self.next.wrapping_add(1);
    }

    /// Handles a packet from the gateway of another host.
    fn arrived(
        &mut self,
        TunnelPacket { host, bytes }: TunnelPacket,
        now: Instant,
        send: &mut dyn FnMut(TunnelPacket),
    ) {
        let Some((tunnel, packet)) = Packet::parse(bytes) else {
            return log::warn!("gateway: host {host} has sent an invalid packet");
        };
        if packet.is_for_receiver() {
            return self.arrived_for_sink((host, tunnel), packet, send);
        }
        // A packet of a tunnel that has ended here, or of another host's tunnel, has no effect.
        let Some(source) = self.sources.get_mut(&tunnel).filter(|source| source.host == host) else { return };
        match packet {
            Packet::Confirm { received, waiting } => source.confirm(received, waiting, now),
            Packet::Gone(ending) => {
                source.finish(ending);
                self.sources.remove(&tunnel);
            }
            Packet::Content(..) | Packet::Probe => {}
        }
    }

    fn arrived_for_sink(&mut self, id: TunnelId, packet: Packet, send: &mut dyn FnMut(TunnelPacket)) {
        let content = match packet {
            Packet::Content(number, content) => Some((number, content)),
            _ => None,
        };
        if let Some(sink) = self.sinks.get_mut(&id) {
            return sink.accept(content);
        }
        let ended = self.ended.iter().find(|(ended, _)| *ended == id);
        let opened = match (ended, content) {
            (None, Some((_, Content::Open { .. }))) if self.sinks.len() >= SINKS_MAX => {
                log::warn!("gateway: {SINKS_MAX} tunnels lead to this host: another one is refused");
                Err(Ending::Died)
            }
            (Some((_, ending)), _) => Err(*ending),
            (None, Some((_, Content::Open { from, to, lane }))) => self.open(from, to, lane),
            (None, _) => Err(Ending::Died),
        };
        match opened {
            // The sender tries again if the process has to read its mailbox first.
            Ok(sink) => self.sinks.extend(sink.map(|sink| (id, sink))),
            Err(ending) => {
                send(TunnelPacket { host: id.0, bytes: Packet::Gone(ending).encode(id.1) });
            }
        }
    }

    /// Creates a lane to the process `to` of this host. Returns None if the process's mailbox is full, and an ending if
    /// it cannot be reached.
    fn open(&self, from: ExternalAddress, to: ExternalAddress, lane: u32) -> Result<Option<Sink>, Ending> {
        let me = self.me();
        let cannot = |error: &dyn std::fmt::Display| {
            if !to.mailbox.is_gone() {
                log::warn!("gateway: process {} of another job cannot be reached: {error}", to.mailbox.pid);
            }
            Ending::Died
        };
        if !me.is_near(&to) {
            return Err(cannot(&"it is on another host"));
        }
        let bells = self.members.backend().bells(&to.host).map_err(|error| cannot(&error))?;
        let bell = (me.host, FORWARDER_DOORBELL as u32);
        let announcement = Announcement { from, to, bell, maker: me.mailbox };
        let reader = (NoteReader::Process, &to.mailbox);
        let made = create_lane(self.members.shm_dir(), lane.into(), &announcement, reader);
        Ok(made.map_err(|error| cannot(&error))?.map(|lane| Sink::new(announcement, lane, bells)))
    }

    /// Ends the tunnels from and to hosts that cannot be reached any more, or whose first rank has died, since that had
    /// the gateway.
    fn lose_hosts(&mut self) {
        let topology = self.members.topology();
        let losses = self.members.peer_losses(&self.members.failures());
        let firsts = losses.iter().map(PeerLoss::rank).filter(|rank| topology.local_of(*rank) == 0);
        let lost: Vec<usize> = firsts.map(|rank| topology.host_of(rank)).collect();
        self.sources.retain(|_, source| {
            let stays = !lost.contains(&source.host);
            if !stays {
                source.finish(Ending::Died);
            }
            stays
        });
        self.sinks.iter_mut().filter(|((host, _), _)| lost.contains(host)).for_each(|(_, sink)| sink.cut());
    }

    fn step_sources(&mut self, check: bool, now: Instant, send: &mut dyn FnMut(TunnelPacket)) -> usize {
        let part = self.members.packet_max() - Route::LEN - HEAD;
        let mut moved = 0;
        self.sources.retain(|tunnel, source| {
            moved += source.take(part, check);
            while let Some(packet) = source.next(now) {
                moved += 1;
                send(TunnelPacket { host: source.host, bytes: packet.encode(*tunnel) });
            }
            !source.is_over()
        });
        moved
    }

    fn step_sinks(&mut self, check: bool, send: &mut dyn FnMut(TunnelPacket)) -> usize {
        let mut moved = 0;
        let ended = &mut self.ended;
        self.sinks.retain(|&(host, tunnel), sink| {
            let sender_ending = sink.place();
            if let Some(packet) = sink.confirmation() {
                moved += 1;
                send(TunnelPacket { host, bytes: packet.encode(tunnel) });
            }
            let reader_ending = sink.reader_ending(check);
            let ending = match (sender_ending, reader_ending) {
                (None, None) => return true,
                (Some(ending), _) => {
                    sink.finish(ending);
                    ending
                }
                (None, Some(ending)) => {
                    send(TunnelPacket { host, bytes: Packet::Gone(ending).encode(tunnel) });
                    ending
                }
            };
            if ended.len() == ENDED_MAX {
                ended.pop_front();
            }
            ended.push_back(((host, tunnel), ending));
            false
        });
        moved
    }

    /// Returns the time until the next step, independent of doorbells; None if no timer is armed.
    pub fn rest(&self, now: Instant) -> Option<Duration> {
        let check = self.is_in_use().then_some(CHECK_EVERY);
        self.sources.values().filter_map(|source| source.rest(now)).chain(check).min()
    }

    /// Returns lines on tunnels that are not empty, for the diagnosis of a hang.
    pub fn describe(&self) -> Vec<String> {
        let sources = self.sources.values().filter_map(Source::describe);
        sources.chain(self.sinks.values().filter_map(Sink::describe)).collect()
    }
}

impl Drop for Gateway {
    /// A gateway ends when all ranks of its job have left.
    fn drop(&mut self) {
        self.sources.values().for_each(|source| source.finish(Ending::Left));
        self.sinks.values().for_each(|sink| sink.finish(Ending::Left));
    }
}
