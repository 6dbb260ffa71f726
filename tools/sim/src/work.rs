//! The work of threads on packets, and its duration.

use super::agenda::{ns, time_for, Time};
use super::lane::Lane;
use super::machine::{Event, Load, Own, Packet, Simulation, Track, DELIVER, KINDS, ORDERS};
use super::net::PORTS;
use super::plan::SimError;
use super::threads::{Begun, Centre, Input, Memory, Outcome, State};
use ntbring_ntb::Side;
use std::collections::VecDeque;

/// Size of a returned head in bytes.
const HEAD: usize = 8;

impl Simulation<'_> {
    fn lane_of(&self, link: usize, kind: usize, urgent: bool, src: usize, dst: usize) -> usize {
        // Selects the channel, one of several threads' lanes: all packets of a flow use the same one.
        let mixed = (src as u64 * 0x9e37_79b1).wrapping_add(dst as u64 * 0x85eb_ca77) >> 13;
        let channel = mixed as usize % self.plan.threads;
        ((link * KINDS + kind) * 2 + usize::from(urgent)) * self.plan.threads + channel
    }

    pub fn link_of(&self, track: usize) -> usize {
        track / (KINDS * 2 * self.plan.threads)
    }

    pub fn kind_of(&self, track: usize) -> usize {
        track / (2 * self.plan.threads) % KINDS
    }

    pub fn is_urgent(&self, track: usize) -> bool {
        track / self.plan.threads % 2 == 1 || self.kind_of(track) == ORDERS
    }

    /// Returns the host at the receiving end of a link, and its port there.
    pub fn end_of(&self, link: usize) -> (usize, usize) {
        // Only existing links have lanes.
        self.plan.form.peer(link / PORTS, link % PORTS).unwrap_or((link / PORTS, link % PORTS))
    }

    /// Returns the lane by which a packet leaves a host.
    pub fn way_out(&mut self, src: usize, dst: usize, side: Side, at: usize, hops: usize, urgent: bool) -> usize {
        let hop = self.net.next(src, dst, side, at, hops);
        let link = at * PORTS + usize::from(hop.port);
        let kind = if self.end_of(link).0 == dst { DELIVER } else { usize::from(hop.class) };
        self.lane_of(link, kind, urgent, src, dst)
    }

    /// Returns the lane to the neighbour's manager driver.
    pub fn way_of_control(&self, host: usize, side: Side) -> usize {
        let link = host * PORTS + side as usize;
        self.lane_of(link, ORDERS, false, 0, 0)
    }

    pub fn track(&mut self, track: usize) -> &mut Track {
        let layout = self.layout;
        self.tracks[track].get_or_insert_with(|| {
            let (source, waiters, states) = (VecDeque::new(), VecDeque::new(), [State::Empty; 2]);
            Box::new(Track { lane: Lane::new(layout), arrived: 0, latest: 0, source, states, waiters })
        })
    }

    /// Returns true if a host knows that a link is down.
    fn is_closed(&self, link: usize) -> bool {
        self.control.as_ref().is_some_and(|control| control.is_closed(link / PORTS, link % PORTS))
    }

    /// Enqueues an item that the host has to send by a lane.
    pub fn put_source(&mut self, host: usize, track: usize, own: Own) {
        debug_assert_eq!(host, self.link_of(track) / PORTS);
        let entry = self.track(track);
        entry.source.push_back(own);
        if entry.states[1] == State::Empty {
            self.make_ready(Input { track, own: true });
        }
    }

    /// Returns the time at which a thread begins, which is later if more threads are busy than there are cores.
    fn begin(&self, host: usize) -> Time {
        let busy: usize = self.hosts[host].centres.iter().map(Centre::busy).sum();
        let switch = if busy > self.plan.host.cores { self.costs[0].switch } else { 0 };
        self.agenda.now() + switch
    }

    /// Handles the next packet of a lane, which is for this host or in transit. The error is the lane that has no room.
    pub fn serve_lane(&mut self, host: usize, input: Input) -> Result<Begun, Option<usize>> {
        let Some(number) = self.track(input.track).lane.look() else { return Err(None) };
        let kind = self.links[self.link_of(input.track)].kind;
        let begin = self.begin(host) + self.costs[kind].packet + self.costs[kind].receive;
        let packet = &self.packets[number];
        let (src, dst, side, hops, bytes) = (packet.src, packet.dst, packet.side, packet.hops, packet.bytes);
        if packet.lost {
            return Ok((begin, Outcome::Dropped(number), [None; 2]));
        }
        if dst == host {
            let rate = self.plan.host.copy;
            if !self.plan.protocol.copies {
                return Ok((begin, Outcome::Delivered(number), [None; 2]));
            }
            // Each byte is read and written.
            let memory = [Some((host, 2 * rate)), None];
            return Ok((begin + time_for(bytes, rate), Outcome::Delivered(number), memory));
        }
        let urgent = packet.urgent;
        let out = self.way_out(src, dst, side, host, hops, urgent);
        if self.is_closed(self.link_of(out)) {
            return Ok((begin, Outcome::Dropped(number), [None; 2]));
        }
        if !self.put(out, number, bytes) {
            return Err(Some(out));
        }
        let (end, memory) = self.transfer(out, number, begin);
        let end = self.leave_here(host, number, end);
        Ok((end, Outcome::Forwarded, memory))
    }

    /// Sends the next packet that this host has for a lane. The error is the lane that has no room.
    pub fn serve_own(&mut self, host: usize, input: Input) -> Result<Begun, Option<usize>> {
        let (track, link) = (input.track, self.link_of(input.track));
        let begin = self.begin(host);
        let closed = self.is_closed(link);
        let number = match self.track(track).source.front() {
            None => return Err(None),
            Some(Own::Message(message)) => {
                let message = *message;
                let one = &self.messages[message];
                let bytes = (one.bytes - one.sent).min(self.plan.protocol.chunk).min(self.transfer_max(link));
                let last = one.sent + bytes == one.bytes;
                let load = Load::Chunk { message, last };
                let (src, dst, acknowledges) = (one.src, one.dst, one.acknowledges.is_some());
                let (side, urgent) = (self.net.side(src, dst), acknowledges && self.plan.protocol.urgent);
                let (hops, lost, since) = (0, false, 0);
                let packet = Packet { src, dst, side, hops, bytes, urgent, acknowledges, lost, since, load };
                let number = self.packets.insert(packet);
                if !self.put(track, number, bytes) {
                    self.packets.remove(number);
                    return Err(Some(track));
                }
                self.messages[message].sent += bytes;
                if last {
                    self.track(track).source.pop_front();
                }
                number
            }
            Some(Own::Packet(packet)) => {
                let (bytes, dst) = (packet.bytes, packet.dst);
                let peer = matches!(packet.load, Load::Datagram { .. }).then_some(dst);
                let next = self.packets.vacant_key();
                if !closed && !self.put(track, next, bytes) {
                    return Err(Some(track));
                }
                let Some(Own::Packet(packet)) = self.track(track).source.pop_front() else { return Err(None) };
                if closed {
                    self.tally.lost += 1;
                    return Ok((begin, Outcome::Sent { message: None, peer }, [None; 2]));
                }
                self.packets.insert(packet)
            }
        };
        let outcome = match self.packets[number].load {
            Load::Chunk { message, last: true } => Outcome::Sent { message: Some(message), peer: None },
            Load::Datagram { .. } => Outcome::Sent { message: None, peer: Some(self.packets[number].dst) },
            _ => Outcome::Sent { message: None, peer: None },
        };
        let (end, memory) = self.transfer(track, number, begin);
        Ok((end, outcome, memory))
    }

    fn transfer_max(&self, link: usize) -> u64 {
        self.plan.links[self.links[link].kind].transfer_max
    }

    fn put(&mut self, track: usize, number: usize, bytes: u64) -> bool {
        let bytes = (bytes + self.plan.protocol.header) as usize;
        self.track(track).lane.put(number, bytes)
    }

    /// Writes a packet into the next lane, from time `begin` on. Returns the time at which the thread has finished, and
    /// the memory that it uses.
    fn transfer(&mut self, track: usize, number: usize, begin: Time) -> (Time, Memory) {
        let link = self.link_of(track);
        let (from, (to, _)) = (link / PORTS, self.end_of(link));
        let kind = self.links[link].kind;
        let (figures, costs, prices) = (&self.plan.links[kind], self.costs[kind], self.prices[kind]);
        let loss = self.plan.faults.loss;
        let lost = matches!(self.packets[number].load, Load::Datagram { .. }) && loss > 0.0 && self.rng.f64() < loss;
        let bytes = self.packets[number].bytes + self.plan.protocol.header;
        let mut cost = prices.cost(bytes as usize);
        if figures.engine_limited {
            // The engine's next read waits while the memory serves others.
            let others = (self.hosts[from].memory + self.hosts[to].memory) as f64 / self.plan.host.memory as f64;
            cost += (cost as f64 * others) as Time;
        }
        let start = begin + costs.packet;
        let line = &mut self.links[link];
        line.busy += cost;
        let acknowledges = self.packets[number].acknowledges;
        let (end, written) = match self.plan.protocol.dma {
            // The processor writes this word itself: on the wire it passes between packets of the engine's transfers.
            true if acknowledges => {
                line.free += cost;
                (start + cost + costs.send, start + cost + costs.send)
            }
            // The doorbell follows the data, so the thread waits for the engine.
            true => {
                line.free = line.free.max(start) + cost;
                (line.free + costs.send, line.free + costs.send)
            }
            false => {
                line.free = line.free.max(start) + cost;
                let copied = start + costs.send + time_for(bytes, self.plan.host.copy);
                (copied, copied.max(line.free))
            }
        };
        let arrival = written + ns(figures.latency_ns);
        let bandwidth = figures.bandwidth;
        let entry = self.track(track);
        entry.latest = entry.latest.max(arrival);
        let arrival = entry.latest;
        let packet = &mut self.packets[number];
        packet.hops += 1;
        packet.since = arrival;
        packet.lost |= lost;
        self.tally.packets += 1;
        self.agenda.at(arrival, Event::Arrive(track));
        (end, [Some((from, bandwidth)), Some((to, bandwidth))])
    }

    /// Handles the arrival of a packet at the end of a lane.
    pub fn arrive(&mut self, track: usize) {
        let link = self.link_of(track);
        if !self.links[link].up {
            return self.links[link].held.push(Event::Arrive(track));
        }
        let entry = self.track(track);
        entry.arrived += 1;
        if entry.states[0] == State::Empty {
            self.make_ready(Input { track, own: false });
        }
    }

    /// Handles the arrival of a head: inputs that wait for room try again.
    pub fn head_arrives(&mut self, track: usize, head: u64) {
        let link = self.link_of(track);
        if !self.links[link].up {
            return self.links[link].held.push(Event::Head(track, head));
        }
        self.track(track).lane.head_arrives(head);
        self.unblock(track);
    }

    /// Lets the inputs that wait for room in a lane try again.
    pub fn unblock(&mut self, track: usize) {
        for input in std::mem::take(&mut self.track(track).waiters) {
            self.make_ready(input);
        }
    }

    /// Frees the space of the packet that was taken from a lane.
    pub fn release(&mut self, track: usize) {
        let link = self.link_of(track);
        let entry = self.track(track);
        entry.arrived -= 1;
        let Some(head) = entry.lane.release() else { return };
        self.tally.heads += 1;
        let (peer, port) = self.end_of(link);
        let back = &mut self.links[peer * PORTS + port];
        let kind = back.kind;
        back.free = back.free.max(self.agenda.now()) + self.prices[kind].cost(HEAD);
        let arrival = back.free + ns(self.plan.links[kind].latency_ns);
        self.agenda.at(arrival, Event::Head(track, head));
    }

    /// Handles a packet that is at its destination.
    pub fn delivered(&mut self, host: usize, track: usize, number: usize) -> Result<(), SimError> {
        let packet = self.packets.remove(number);
        match packet.load {
            Load::Chunk { message, .. } => self.come(message, packet.bytes),
            Load::Multicast(to) => self.end_here(to, packet.bytes),
            Load::Datagram { datagram, bytes, len } => self.datagram_came(packet.src, host, &datagram, &bytes, len)?,
            Load::Control(bytes) => {
                let port = self.end_of(self.link_of(track)).1;
                self.control_came(host, port, &bytes)?;
            }
        }
        Ok(())
    }
}
