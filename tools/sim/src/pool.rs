//! Pools of threads: the inputs that wait for a thread, and their order.
//!
//! A host has two pools: its forwarder threads, and the threads of its ranks, if the protocol has them move their own
//! messages. A thread takes urgent packets first, and otherwise the one that has waited longest, regardless of whether
//! it is the host's own or in transit. One thread at a time works on an input, so that the packets of an input stay in
//! order. A packet for which there is no room does not occupy a thread: its input waits until a head is returned, and
//! other inputs continue.

use super::agenda::Time;
use super::machine::{Event, Own, Simulation, DELIVER, ORDERS};
use super::net::PORTS;
use super::plan::SimError;
use super::threads::{Input, Job, Outcome, State, POOL, RANKS};
use std::cmp::Reverse;

impl Simulation<'_> {
    /// Returns the host and the pool that an input belongs to.
    fn place(&self, input: Input) -> (usize, usize) {
        let (link, kind) = (self.link_of(input.track), self.kind_of(input.track));
        let host = if input.own { link / PORTS } else { self.end_of(link).0 };
        let protocol = &self.plan.protocol;
        // A packet that is not copied is only registered, by the thread that handles the interrupt.
        let own = input.own || kind == DELIVER && protocol.copies;
        let ranks = protocol.ranks_transfer && kind != ORDERS && own;
        (host, if ranks { RANKS } else { POOL })
    }

    /// Marks an input as ready for a thread.
    pub fn make_ready(&mut self, input: Input) {
        let (host, centre) = self.place(input);
        let since = self.since(input);
        let number = self.agenda.entered();
        self.track(input.track).states[usize::from(input.own)] = State::Ready;
        let class = !self.is_urgent(input.track);
        self.hosts[host].centres[centre].ready.push(Reverse((class, since, number, input)));
        self.rouse(host, centre, input.own);
    }

    /// Returns the time since which an input's next packet has waited.
    fn since(&mut self, input: Input) -> Time {
        let Some(track) = &mut self.tracks[input.track] else { return self.agenda.now() };
        let front = if input.own { track.source.front() } else { None };
        match (front, input.own) {
            (Some(Own::Message(message)), _) => self.messages[*message].issued,
            (Some(Own::Packet(packet)), _) => packet.since,
            (None, true) => self.agenda.now(),
            (None, false) => track.lane.look().map_or(self.agenda.now(), |number| self.packets[number].since),
        }
    }

    /// Wakes as many threads as there are ready inputs.
    pub fn rouse(&mut self, host: usize, centre: usize, own: bool) {
        let now = self.agenda.now();
        let costs = self.costs[0];
        let pool = &mut self.hosts[host].centres[centre];
        while pool.ready.len() + usize::from(pool.compute.is_some()) > pool.coming {
            let Some(since) = pool.idle.pop() else { return };
            pool.coming += 1;
            let delay = match own {
                // A rank that sends is awake.
                true if centre == RANKS => 0,
                _ if now - since <= costs.spin => 0,
                true => costs.wake,
                false => costs.bell,
            };
            self.agenda.after(delay, Event::Awake(host, centre));
        }
    }

    /// Handles that a thread has woken up: it looks for work.
    pub fn awake(&mut self, host: usize, centre: usize) {
        self.hosts[host].centres[centre].coming -= 1;
        self.look_for_work(host, centre);
    }

    pub fn look_for_work(&mut self, host: usize, centre: usize) {
        if let Some(time) = self.hosts[host].centres[centre].compute.take() {
            return self.agenda.after(time, Event::Computed(host));
        }
        while let Some(Reverse((.., input))) = self.hosts[host].centres[centre].ready.pop() {
            if self.serve(host, centre, input) {
                return;
            }
        }
        let now = self.agenda.now();
        self.hosts[host].centres[centre].idle.push(now);
    }

    /// Lets a thread begin the next packet of an input. Returns false if there is no room for it.
    fn serve(&mut self, host: usize, centre: usize, input: Input) -> bool {
        let begun = if input.own { self.serve_own(host, input) } else { self.serve_lane(host, input) };
        let slot = usize::from(input.own);
        match begun {
            Ok((end, outcome, memory)) => {
                self.track(input.track).states[slot] = State::Served;
                memory.into_iter().flatten().for_each(|(host, rate)| self.hosts[host].memory += rate);
                let job = self.jobs.insert(Job { host, centre, input, outcome, memory });
                self.agenda.at(end, Event::Done(job));
                true
            }
            Err(Some(full)) => {
                self.tally.waits += 1;
                self.track(input.track).states[slot] = State::Blocked;
                self.track(full).waiters.push_back(input);
                false
            }
            Err(None) => {
                self.track(input.track).states[slot] = State::Empty;
                false
            }
        }
    }

    /// Handles that a thread has finished a job.
    pub fn done(&mut self, job: usize) -> Result<(), SimError> {
        let Job { host, centre, input, outcome, memory } = self.jobs.remove(job);
        memory.into_iter().flatten().for_each(|(host, rate)| self.hosts[host].memory -= rate);
        // This thread looks for work itself below.
        self.hosts[host].centres[centre].coming += 1;
        let more = match outcome {
            Outcome::Sent { message, peer } => {
                message.into_iter().for_each(|message| self.left(message));
                peer.into_iter().for_each(|peer| self.datagram_left(host, peer));
                !self.track(input.track).source.is_empty()
            }
            Outcome::Forwarded | Outcome::Delivered(_) | Outcome::Dropped(_) => {
                self.release(input.track);
                match outcome {
                    Outcome::Delivered(number) => self.delivered(host, input.track, number)?,
                    Outcome::Dropped(number) => {
                        self.packets.remove(number);
                        self.tally.lost += 1;
                    }
                    _ => {}
                }
                self.track(input.track).arrived > 0
            }
        };
        match more {
            true => self.make_ready(input),
            false => self.track(input.track).states[usize::from(input.own)] = State::Empty,
        }
        self.hosts[host].centres[centre].coming -= 1;
        self.look_for_work(host, centre);
        self.rouse(host, centre, false);
        Ok(())
    }
}
