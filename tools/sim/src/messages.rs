//! The life of messages: they are sent, leave, and arrive, and their senders are notified.

use super::agenda::Time;
use super::machine::{Event, Message, Own, Simulation};
use super::parameters::Acknowledge;
use super::traffic::{interval, Pacing, Traffic};

impl Simulation<'_> {
    /// Sends a message of a trace, or the next message of a host.
    pub fn inject(&mut self, n: usize) {
        let (pattern, pacing, bytes) = match &self.plan.traffic {
            Traffic::Trace(calls) => {
                let call = calls[n];
                self.send(call.src, call.dst, call.bytes, None);
                return;
            }
            Traffic::Multicast(calls) => return self.spread(&calls[n]),
            Traffic::Collective(_) => return self.advance(n),
            Traffic::Made { pattern, pacing, bytes } => (*pattern, *pacing, *bytes),
        };
        match pacing {
            Pacing::Load { time, .. } => {
                let next = self.agenda.now() + interval(bytes, self.rate, &mut self.rng);
                if next < time {
                    self.agenda.at(next, Event::Inject(n));
                }
            }
            Pacing::Window { count, .. } if self.hosts[n].sent >= count => return,
            Pacing::Local { time, .. } if self.agenda.now() >= time => return,
            _ => {}
        }
        if let Some(dst) = pattern.destination(self.plan.form, n, self.hosts[n].sent, &mut self.rng) {
            self.hosts[n].sent += 1;
            self.send(n, dst, bytes, None);
        }
    }

    /// Passes a message to the network, and returns its number.
    pub fn send(&mut self, src: usize, dst: usize, bytes: u64, acknowledges: Option<(usize, Time)>) -> usize {
        let back = acknowledges.is_some();
        let message = self.issue(src, dst, bytes, acknowledges);
        if self.plan.faults.retry {
            self.carry(src, dst, message);
            return message;
        }
        let urgent = back && self.plan.protocol.urgent;
        let track = self.way_out(src, dst, self.net.side(src, dst), src, 0, urgent);
        self.put_source(src, track, Own::Message(message));
        message
    }

    /// Registers a message that is about to be passed to the network, and returns its number.
    pub fn issue(&mut self, src: usize, dst: usize, bytes: u64, acknowledges: Option<(usize, Time)>) -> usize {
        let (issued, back) = (self.agenda.now(), acknowledges.is_some());
        let flow = self.flows.entry((src, dst, back)).or_default();
        let message = Message { src, dst, bytes, sent: 0, come: 0, issued, number: flow.0, acknowledges };
        flow.0 += 1;
        if !back {
            self.tally.messages += 1;
            self.tally.bytes_in += bytes;
        }
        self.messages.insert(message)
    }

    /// Handles that a whole message has left its source.
    pub fn left(&mut self, message: usize) {
        let Message { src, acknowledges, .. } = self.messages[message];
        if let (Traffic::Made { pacing: Pacing::Local { .. }, .. }, None) = (&self.plan.traffic, acknowledges) {
            self.agenda.after(0, Event::Inject(src));
        }
        self.sent(src, message);
    }

    /// Handles that a chunk of a message has arrived at its destination.
    pub fn come(&mut self, message: usize, bytes: u64) {
        let now = self.agenda.now();
        self.messages[message].come += bytes;
        let acknowledges = self.messages[message].acknowledges;
        if acknowledges.is_none() {
            self.tally.bytes_out += bytes;
            let measured = if self.tally.counts(now) { bytes } else { 0 };
            self.tally.measured[self.messages[message].src] += measured;
        }
        if self.messages[message].come < self.messages[message].bytes {
            return;
        }
        let Message { src, dst, bytes, issued, number, .. } = self.messages.remove(message);
        let flow = self.flows.entry((src, dst, acknowledges.is_some())).or_default();
        self.tally.overtaken += u64::from(number != flow.1);
        flow.1 += 1;
        if let Some((sender, since)) = acknowledges {
            return self.known(sender, since);
        }
        debug_assert!(bytes > 0);
        self.tally.delivered += 1;
        self.tally.last = now;
        match self.plan.protocol.acknowledge {
            Acknowledge::Never => self.known(src, issued),
            Acknowledge::Sender => {
                self.send(dst, src, self.plan.protocol.acknowledgement, Some((src, issued)));
            }
        }
        self.received(dst, src);
    }

    /// Handles that a host has learned of the arrival of its message.
    fn known(&mut self, src: usize, issued: Time) {
        if self.tally.counts(issued) {
            self.tally.latencies.push(self.agenda.now() - issued);
        }
        if let Traffic::Made { pacing: Pacing::Window { .. }, .. } = self.plan.traffic {
            self.agenda.after(0, Event::Inject(src));
        }
    }
}
