//! All tunnels of a host.

use super::mail::{Mail, TunnelPacket};
use super::packet::{Content, Ending, Packet, HEAD};
use super::sink::Sink;
use super::source::Source;
use crate::external_peer::{create_lane, open_lane, Announcement, ExternalAddress};
use crate::membership::Membership;
use crate::protocol::FORWARDER_DOORBELL;
use crate::relay::Route;
use ntbring_host::{HostError, Mailbox, NoteReader};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval between two checks for processes that have died.
const CHECK_EVERY: Duration = Duration::from_millis(500);

/// Number of tunnels that have ended and are remembered, so that late packets do not open them again.
const ENDED_MAX: usize = 256;

/// A tunnel at its receiving end: the host of the sending end, and the tunnel's number there.
type TunnelId = (usize, u32);

/// The gateway of a host.
pub(crate) struct Gateway {
    members: Arc<Membership>,
    mailbox: Mailbox,
    sources: BTreeMap<u32, Source>,
    sinks: BTreeMap<TunnelId, Sink>,
    ended: VecDeque<(TunnelId, Ending)>,
    /// Number of the next tunnel.
    next: u32,
    /// Time of the latest check.
    checked: Instant,
}

impl Gateway {
    /// Creates the gateway of this process's host.
    pub fn new(members: &Arc<Membership>, now: Instant) -> Gateway {
        let (sources, sinks, ended) = (BTreeMap::new(), BTreeMap::new(), VecDeque::new());
        Gateway {
            mailbox: members.share_mailbox(),
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
        self.mailbox.has_news() || !mail.is_empty() || !(self.sources.is_empty() && self.sinks.is_empty())
    }

    /// Opens lanes that were announced, handles packets that have arrived, and moves entries between lanes and tunnels.
    /// Calls `send` with each packet to be sent. Returns the number of packets and entries.
    #[cold]
    pub fn step(&mut self, mail: &Mail, now: Instant, send: &mut dyn FnMut(TunnelPacket)) -> usize {
        let check = now.saturating_duration_since(self.checked) >= CHECK_EVERY;
        if check {
            self.checked = now;
        }
        let mut moved = self.read_notes();
        for packet in mail.take() {
            moved += 1;
            self.arrived(packet, now, send);
        }
        if check {
            self.lose_hosts();
        }
        moved + self.step_sources(check, now, send) + self.step_sinks(check, send)
    }

    /// Opens the lanes that were announced to the gateway.
    fn read_notes(&mut self) -> usize {
        let mut read = 0;
        while let Some(note) = self.mailbox.read(NoteReader::Gateway) {
            read += 1;
            let lane = match open_lane(&note) {
                Ok(lane) => lane,
                Err(error @ HostError::Open { .. }) => {
                    log::debug!("gateway: {error}");
                    continue;
                }
                Err(error) => {
                    log::warn!("gateway: an announcement was dropped: {error}");
                    continue;
                }
            };
            let Announcement { to, bell, .. } = lane.announcement;
            let bells = match self.members.backend().bells(&bell.0) {
                Ok(bells) => bells,
                Err(error) => {
                    log::warn!("gateway: an announcement was dropped: {error}");
                    continue;
                }
            };
            let rank = self.members.external_peer_addresses().iter().position(|rank| rank.is_near(&to));
            let host = rank.map(|rank| self.members.topology().host_of(rank as u32));
            let source = Source::new(lane, host.unwrap_or(self.members.host()), bells);
            match host {
                Some(host) => {
                    let (tunnel, pid) = (self.next, to.mailbox.pid);
                    log::debug!("gateway: tunnel {tunnel} leads to host {host}, for process {pid} of another job");
                    self.sources.insert(self.next, source);
                    self.next = self.next.wrapping_add(1);
                }
                None => {
                    log::warn!("gateway: process {} is on a host where this job has no rank", to.mailbox.pid);
                    source.finish(Ending::Died);
                }
            }
        }
        read
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
            (Some((_, ending)), _) => Err(*ending),
            (None, Some((_, Content::Open { from, to, lane }))) => self.open(from, to, lane),
            (None, _) => Err(Ending::Left),
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

    /// Ends the tunnels from and to hosts whose first rank has died, since that had the gateway.
    fn lose_hosts(&mut self) {
        let topology = self.members.topology();
        let lost: Vec<usize> =
            self.members.dead().iter().filter(|dead| topology.local_of(dead.rank) == 0).map(|dead| dead.host).collect();
        self.sources.retain(|_, source| {
            let stays = !lost.contains(&source.host);
            if !stays {
                source.finish(Ending::Died);
            }
            stays
        });
        self.sinks.retain(|(host, _), sink| {
            let stays = !lost.contains(host);
            if !stays {
                sink.finish(Ending::Died);
            }
            stays
        });
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
                    Ending::Left
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
        let check = (!self.sources.is_empty() || !self.sinks.is_empty()).then_some(CHECK_EVERY);
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
