//! A transit channel: the packets of one class that a host forwards to one side, with the lanes by which they arrive
//! and those by which they leave. Every lane belongs to one transit channel only, so several threads can forward
//! different transit channels at the same time.
//!
//! A packet is copied once, from the lane by which it has arrived straight into the next lane: into the lane of the
//! receiving rank if the next host is its destination, else into the lane of the next host's forwarder. A request is
//! for the forwarder of its destination's host, which serves it.

use super::forwarder_state::ForwarderState;
use super::own_packet::{trim, OwnPacket};
use super::relay_counters::{count, RelayCounters};
use super::route::{check, is_for_forwarder, is_of_tunnel, wrong, Allowed, RelayError, Route};
use crate::layout::{Class, End};
use crate::link::Link;
use crate::protocol::rank_doorbell;
use crate::topology::Topology;
use ntbring_memory::CopySource;
use ntbring_ntb::{Port, Side};
use ntbring_queue::{Consumer, Entry, Producer};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// Maximum number of packets that one input may forward before the next input has its turn.
const TURN: usize = 8;

/// Number of the forwarder's own packets that may wait for room in a lane before packets of tunnels are dropped.
const OWN_MAX: usize = 1024;

/// State that all transit channels of a host share.
pub(super) struct ForwarderContext {
    pub topology: Arc<Topology>,
    pub host: usize,
    pub allowed: Allowed,
    pub state: Arc<ForwarderState>,
    pub counters: Arc<RelayCounters>,
}

struct Input {
    lane: Consumer,
    /// Doorbell of the neighbour that writes the lane, for the end that writes.
    bell: usize,
    /// Packet that was taken from the lane, but for which the output had no room.
    blocked: Option<Entry>,
    /// Packets whose bytes an engine is copying, in order: the index of each packet's output, and the number of its
    /// copy there.
    copying: VecDeque<(usize, u64)>,
}

impl Input {
    /// Returns the next packet that was not forwarded yet.
    fn next(&mut self, from: usize) -> Result<Option<Entry>, RelayError> {
        match self.blocked.take() {
            None => self.lane.take().map_err(|error| RelayError::Corrupt { from, error }),
            blocked => Ok(blocked),
        }
    }
}

struct Output {
    lane: Producer,
    /// Doorbell of the neighbour that reads the lane, for the end that reads.
    bell: usize,
    /// Packets of this host's forwarder that wait for room in the lane, in order.
    own: VecDeque<OwnPacket>,
}

/// Result of forwarding a packet.
enum Forwarded {
    /// The packet's bytes are in the next lane.
    Copied,
    /// An engine is copying the packet's bytes.
    Copying,
    /// The next lane is full.
    NoRoom,
}

/// A transit channel: the packets of one class that a host forwards to one side.
pub(super) struct TransitChannel {
    context: Arc<ForwarderContext>,
    /// The side by which packets leave.
    side: Side,
    class: Class,
    /// The neighbours from which packets arrive and to which they leave.
    from: usize,
    to: usize,
    inputs: Vec<Input>,
    /// Lanes to the next host's ranks, then the two to its forwarder: before and beyond the dateline.
    outputs: Vec<Output>,
    /// The ports by which packets arrive and leave.
    ports: [Arc<dyn Port>; 2],
    /// Number of packets of this host's forwarder that wait for room.
    unsent: usize,
    /// Number of packets whose bytes an engine is copying.
    copying: usize,
    /// Numbers of damaged and of retransmitted packets, as counted so far.
    counted: [u64; 2],
    /// Set once the incoming link has gone down and a packet from it was invalid: nothing more is taken from its lanes.
    input_failed: bool,
}

impl TransitChannel {
    /// Creates the transit channel for the packets of `class` that leave to `side`. `links` are the host's links, left
    /// first. Returns None if there are no lanes of that class.
    pub fn new(context: &Arc<ForwarderContext>, links: [&Link; 2], side: Side, class: Class) -> Option<TransitChannel> {
        let (back, on) = (links[side.opposite() as usize], links[side as usize]);
        let (from, to) = (back.neighbour(), on.neighbour());
        let ranks = |host: usize| context.topology.ranks_of(host).len();
        let consumer = |end, beyond| match class {
            Class::Urgent => Some(back.consumer(end, End::Forwarder, beyond)),
            Class::Bulk => back.bulk_consumer(end, End::Forwarder, beyond),
        };
        let producer = |end, beyond| match class {
            Class::Urgent => Some(on.producer(End::Forwarder, end, beyond)),
            Class::Bulk => on.bulk_producer(End::Forwarder, end, beyond),
        };
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        let forwarders = [(End::Forwarder, false), (End::Forwarder, true)];
        for (end, beyond) in (0..ranks(from)).map(|local| (End::Rank(local), false)).chain(forwarders) {
            let bell = bell_of(back, end, side, class);
            inputs.push(Input { lane: consumer(end, beyond)?, bell, blocked: None, copying: VecDeque::new() });
        }
        for (end, beyond) in (0..ranks(to)).map(|local| (End::Rank(local), false)).chain(forwarders) {
            let bell = bell_of(on, end, side, class);
            outputs.push(Output { lane: producer(end, beyond)?, bell, own: VecDeque::new() });
        }
        let (context, ports) = (context.clone(), [back.port(), on.port()]);
        Some(TransitChannel {
            context,
            side,
            class,
            from,
            to,
            inputs,
            outputs,
            ports,
            unsent: 0,
            copying: 0,
            counted: [0; 2],
            input_failed: false,
        })
    }

    /// Returns true if [`TransitChannel::look_after`] must be called soon.
    pub fn is_unsettled(&self) -> bool {
        self.context.state.is_up(self.side) && self.outputs.iter().any(|output| !output.lane.is_settled())
    }

    /// Handles retransmission: sends packets again that were lost or damaged, and updates the counters of such packets.
    pub fn look_after(&mut self, now: Instant) -> Result<(), RelayError> {
        let counters = &self.context.counters;
        if self.context.state.is_up(self.side) {
            for output in &mut self.outputs {
                if output.lane.look_after(now).map_err(|error| RelayError::GaveUp { to: self.to, error })? {
                    self.ports[1].ring(output.bell);
                    count(&counters.doorbells, 1);
                }
            }
        }
        let damaged = self.inputs.iter().map(|input| input.lane.damaged()).sum();
        let resent = self.outputs.iter().map(|output| output.lane.resent()).sum();
        let before = std::mem::replace(&mut self.counted, [damaged, resent]);
        count(&counters.damaged[self.side.opposite() as usize], damaged - before[0]);
        count(&counters.resent[self.side as usize], resent - before[1]);
        Ok(())
    }

    /// Sends packets of this host's forwarder, then forwards the packets that have arrived and for which there is room:
    /// a few of each input in the urgent class, one of each in the bulk class. Packets for this host are served.
    /// Returns the number of packets.
    pub fn step(&mut self) -> Result<usize, RelayError> {
        let (mut moved, turn) = match self.class {
            Class::Urgent => (self.send_own(), TURN),
            Class::Bulk => (self.publish_copied(), 1),
        };
        if self.input_failed {
            return Ok(moved);
        }
        for i in 0..self.inputs.len() {
            for _ in 0..turn {
                match self.pass_on(i) {
                    Ok(true) => moved += 1,
                    Ok(false) => break,
                    // All further packets from that link are from ranks that are lost to the ranks to which the packets
                    // are addressed.
                    Err(error) if self.context.state.has_been_down(self.side.opposite()) => {
                        log::debug!("{error}; the link has gone down");
                        self.input_failed = true;
                        return Ok(moved);
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(moved)
    }

    /// Returns the index of the output by which a packet leaves. `for_host` is true if the packet is for the forwarder
    /// of its destination's host.
    fn way_on(&self, route: Route, for_host: bool) -> usize {
        let ForwarderContext { topology, host, .. } = &*self.context;
        Self::way(topology, *host, self.side, route, for_host)
    }

    /// Returns the index of the output by which a packet leaves `host` to `side`. If the next host is the destination,
    /// a packet that is not for that host's forwarder goes straight to its rank there.
    pub fn way(topology: &Topology, host: usize, side: Side, route: Route, for_host: bool) -> usize {
        let next = topology.neighbour(host, side);
        if topology.host_of(route.dst) == next && !for_host {
            return topology.local_of(route.dst);
        }
        let beyond = topology.beyond_dateline(topology.host_of(route.src), host, side);
        topology.ranks_of(next).len() + usize::from(beyond)
    }

    /// Sends the packets of this host's forwarder for which there is room. Returns the number of packets sent or
    /// dropped. They wait in memory, in one queue for each lane, so that requests are never held up by replies.
    fn send_own(&mut self) -> usize {
        let context = self.context.clone();
        while let Some(packet) = context.state.own_packet(self.side) {
            let way = self.way_on(packet.route(), packet.is_for_forwarder());
            let own = &mut self.outputs[way].own;
            // The sending end of a tunnel sends its packets again while the next host does not take them.
            if packet.is_for_forwarder() && own.len() >= OWN_MAX {
                count(&context.counters.dropped[self.side as usize], 1);
                continue;
            }
            own.push_back(packet);
            self.unsent += 1;
        }
        if self.unsent == 0 {
            return 0;
        }
        let (down, mut done) = (!context.state.is_up(self.side), 0);
        for Output { lane, bell, own } in &mut self.outputs {
            while let Some(packet) = own.pop_front() {
                if down || context.state.is_gone(packet.route().dst) {
                    count(&context.counters.dropped[self.side as usize], 1);
                } else if packet.put(lane) {
                    self.ports[1].ring(*bell);
                    count(&context.counters.doorbells, 1);
                } else {
                    own.push_front(packet);
                    context.state.watch(Instant::now());
                    break;
                }
                context.state.sent(&packet);
                done += 1;
            }
        }
        self.unsent -= done;
        if self.unsent == 0 {
            self.outputs.iter_mut().for_each(|output| trim(&mut output.own));
        }
        done
    }

    /// Takes the next packet of an input. Returns false if there is none, or no room for it in the next lane.
    fn pass_on(&mut self, i: usize) -> Result<bool, RelayError> {
        let from = self.from;
        let Some(entry) = self.inputs[i].next(from)? else { return Ok(false) };
        let ForwarderContext { topology, host, allowed, .. } = &*self.context;
        let came_by = self.side.opposite();
        let route = check((&**topology, *allowed), *host, came_by, from, &self.inputs[i].lane, &entry)?;
        if topology.host_of(route.dst) == *host {
            self.serve(i, &entry, route)?;
        } else if !self.context.state.is_up(self.side) || self.context.state.is_gone(route.dst) {
            count(&self.context.counters.dropped[self.side as usize], 1);
        } else {
            match self.forward(i, &entry, route)? {
                Forwarded::Copied => {}
                Forwarded::Copying => return Ok(true),
                Forwarded::NoRoom => {
                    self.inputs[i].blocked = Some(entry);
                    self.context.state.watch(Instant::now());
                    return Ok(false);
                }
            }
        }
        self.taken(i);
        Ok(true)
    }

    /// Returns true if an engine is copying packets: [`TransitChannel::step`] must be called soon, without a doorbell.
    pub fn is_copying(&self) -> bool {
        self.copying > 0
    }

    /// Publishes packets whose copies are complete, and frees their space in the inputs. Returns their number.
    fn publish_copied(&mut self) -> usize {
        if self.copying == 0 {
            return 0;
        }
        for Output { lane, bell, .. } in &mut self.outputs {
            if lane.publish_copied() > 0 {
                self.ports[1].ring(*bell);
                count(&self.context.counters.doorbells, 1);
            }
        }
        let before = self.copying;
        for i in 0..self.inputs.len() {
            while let Some(&(way, copy)) = self.inputs[i].copying.front() {
                if self.outputs[way].lane.copied() < copy {
                    break;
                }
                self.inputs[i].copying.pop_front();
                self.copying -= 1;
                self.taken(i);
            }
        }
        before - self.copying
    }

    /// Passes a packet that is for this host to the server of one-sided operations or to the gateway.
    fn serve(&mut self, i: usize, entry: &Entry, route: Route) -> Result<(), RelayError> {
        let (at, len) = (entry.offset + Route::LEN, entry.len - Route::LEN);
        if is_of_tunnel(entry) {
            let mut bytes = vec![0; len];
            self.inputs[i].lane.window().read(at, &mut bytes);
            self.context.state.tunnel_packet(route, bytes.into());
            return Ok(());
        }
        if !self.context.state.take(route, self.inputs[i].lane.window(), at, len) {
            return Err(wrong(self.from, entry, Some(route), "its sender has more requests open than it may"));
        }
        count(&self.context.counters.served, 1);
        Ok(())
    }

    /// Copies a packet into the next lane, or lets an engine copy it.
    fn forward(&mut self, i: usize, entry: &Entry, route: Route) -> Result<Forwarded, RelayError> {
        let way = self.way_on(route, is_for_forwarder(entry));
        let Output { lane, bell, .. } = &mut self.outputs[way];
        if entry.len > lane.entry_max() {
            return Err(wrong(self.from, entry, Some(route), "it is too long for the next lane"));
        }
        let by_engine = lane.has_engine_for(entry.len);
        let Some(mut slot) = lane.reserve(entry.len) else { return Ok(Forwarded::NoRoom) };
        let window = self.inputs[i].lane.window();
        let copy = if by_engine {
            let from = CopySource::of_window(window, entry.offset, entry.len);
            slot.commit_copy(entry.kind, entry.len, entry.meta, 0, from)
        } else {
            slot.write(0, window.foreign(entry.offset, entry.len));
            slot.commit(entry.kind, entry.len, entry.meta);
            None
        };
        let counters = &self.context.counters;
        match copy {
            None => {
                self.ports[1].ring(*bell);
                count(&counters.doorbells, 1);
            }
            Some(copy) => {
                self.inputs[i].copying.push_back((way, copy));
                self.copying += 1;
            }
        }
        count(&counters.chunks[self.side as usize], 1);
        count(&counters.bytes[self.side as usize], entry.len as u64);
        if ntbring_timeline::is_on() {
            ntbring_timeline::forwarded(route.src, route.dst, entry.len as u64, self.side == Side::Right);
        }
        if self.class == Class::Bulk {
            count(&counters.bulk, 1);
        }
        Ok(copy.map_or(Forwarded::Copied, |_| Forwarded::Copying))
    }

    /// Frees the space of the entry that was taken from an input.
    fn taken(&mut self, i: usize) {
        let input = &mut self.inputs[i];
        if input.lane.release() {
            count(&self.context.counters.head_updates, 1);
            count(&self.context.counters.doorbells, 1);
            self.ports[0].ring(input.bell);
        }
    }

    /// Returns one line on every lane that is not empty, for the diagnosis of a hang.
    pub fn describe(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let (came_by, class) = (
            self.side.opposite(),
            match self.class {
                Class::Urgent => "",
                Class::Bulk => "bulk ",
            },
        );
        if self.unsent > 0 {
            lines.push(format!("forwarder: {} packets of its own wait for room to the {}", self.unsent, self.side));
        }
        for (i, input) in self.inputs.iter().enumerate() {
            if input.blocked.is_some() || !input.lane.is_empty() {
                let state = if input.blocked.is_some() { "waits for room" } else { "has packets" };
                lines.push(format!("forwarder: {class}input {i} from the {came_by} {state}"));
            }
            if let Some((lines_on, ahead)) = input.lane.gap() {
                lines.push(format!(
                    "forwarder: {class}input {i} from the {came_by}: the next entry is not there, but the {ahead}. \
                     after it seems to be, {lines_on} lines further on: a write was lost"
                ));
            }
        }
        for (n, Output { lane, .. }) in self.outputs.iter().enumerate().filter(|(_, output)| output.lane.taken() > 0) {
            let name = if n + 2 < self.outputs.len() { "rank" } else { "transit" };
            let (taken, all) = (lane.taken(), lane.lines());
            lines.push(format!(
                "forwarder: {class}{name} lane to the {}: {taken} of {all} lines not known to be free",
                self.side
            ));
        }
        lines
    }
}

/// Returns the neighbour's doorbell for the end `end` of a lane over `link`. `side` is the side to which the lane's
/// packets leave.
fn bell_of(link: &Link, end: End, side: Side, class: Class) -> usize {
    match end {
        End::Rank(local) => rank_doorbell(local),
        End::Forwarder => link.bell(side, class),
    }
}
