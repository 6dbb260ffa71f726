//! A run, from its beginning to its report.

use super::agenda::{ns, seconds, Agenda, Time};
use super::collective;
use super::connections::Ends;
use super::drivers::Control;
use super::lane::Layout;
use super::machine::{Event, Host, Link, Simulation, KINDS};
use super::net::{Form, Net, CLASSES, PORTS};
use super::parameters::Costs;
use super::plan::{Plan, SimError};
use super::report::{Report, Tally};
use super::threads::Centre;
use super::traffic::{interval, Pacing, Traffic};
use fastrand::Rng;
use ntbring_endpoint::reliable::datagram::Datagram;
use ntbring_ntb::timing::TICKS_PER_NS;
use slab::Slab;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Memory in bytes that all lanes together may use; larger lanes are scaled down, so that each line represents several.
const LANE_MEMORY: usize = 512 << 20;

/// Time without any arrival after which a run with lossy links is given up.
const STALL_MAX: Time = ns(60_000_000_000);

impl<'a> Simulation<'a> {
    /// Returns a run at its beginning.
    pub fn new(plan: &'a Plan) -> Result<Simulation<'a>, SimError> {
        plan.check()?;
        let net = Net::new(plan.form, plan.protocol.one_way)?;
        let hosts = plan.form.hosts();
        let tracks = hosts * PORTS * KINDS * 2 * plan.threads;
        // Lanes for urgent packets and for manager drivers hold little, and in most networks most lanes are never used.
        let ports = if matches!(plan.form, Form::Torus(..)) { PORTS } else { 2 };
        let used = hosts * ports * (CLASSES + 1) * plan.threads;
        let head = if plan.faults.retry { Datagram::HEAD } else { 0 };
        let packet = plan.protocol.chunk as usize + plan.protocol.header as usize + head;
        let layout = Layout::new(plan.protocol.lane as usize, packet, used, LANE_MEMORY)?;
        let kind = |link: usize| match net.form().peer(link / PORTS, link % PORTS) {
            // A cable has the kind that belongs to the host to its left.
            Some((peer, _)) if (link % PORTS).is_multiple_of(2) => peer % plan.links.len(),
            _ => link / PORTS % plan.links.len(),
        };
        let link = |n| Link { up: true, free: 0, busy: 0, held: Vec::new(), kind: kind(n) };
        let ranks = if plan.protocol.ranks_transfer { 1 } else { 0 };
        let host = || Host { centres: [plan.threads, ranks].map(Centre::new), memory: 0, sent: 0 };
        let mut tally = Tally { measured: vec![0; hosts], ..Tally::default() };
        let mut rate = 0.0;
        if let Traffic::Made { pattern, pacing, bytes } = &plan.traffic {
            let wrong = |what: &str| Err(SimError::Plan(what.into()));
            if let Pacing::Load { time, warm_up, .. } | Pacing::Local { time, warm_up } = *pacing {
                (tally.from, tally.until) = (warm_up, Some(time));
                if warm_up >= time {
                    return wrong("the warm-up must end before the measurement does");
                }
            }
            if let Pacing::Load { load, .. } = *pacing {
                let slowest = plan.links.iter().map(|link| link.bandwidth).min().unwrap_or(1);
                rate = load * pattern.capacity(&net, slowest);
                if !(load > 0.0 && load.is_finite()) {
                    return wrong("a load is above 0");
                }
            }
            if *bytes == 0 {
                return wrong("a message has at least one byte");
            }
        }
        Ok(Simulation {
            costs: plan.links.iter().map(|link| Costs::new(link, &plan.host, &plan.protocol)).collect(),
            prices: plan.links.iter().map(|link| link.model().prices()).collect(),
            agenda: Agenda::default(),
            layout,
            tracks: (0..tracks).map(|_| None).collect(),
            links: (0..hosts * PORTS).map(link).collect(),
            hosts: (0..hosts).map(|_| host()).collect(),
            packets: Slab::new(),
            messages: Slab::new(),
            jobs: Slab::new(),
            flows: HashMap::new(),
            ends: Ends::default(),
            control: (!plan.faults.outages.is_empty()).then(|| Control::new(plan.form.hosts())),
            tally,
            ranks: collective::ranks(plan)?,
            rng: Rng::with_seed(plan.seed),
            rate,
            start: Instant::now(),
            plan,
            net,
        })
    }

    /// Converts the present to an `Instant`, for code that uses instants. Only differences matter to it.
    pub fn instant(&self) -> Instant {
        self.start + Duration::from_nanos(self.agenda.now() / TICKS_PER_NS)
    }

    /// Runs until everything has arrived.
    pub fn run(mut self) -> Result<Report, SimError> {
        self.set_out();
        while !self.is_over() {
            let Some(event) = self.agenda.take() else { break };
            self.happen(event)?;
            let now = self.agenda.now();
            if self.plan.faults.retry && self.missing() > 0 && now > self.tally.last.saturating_add(STALL_MAX) {
                return Err(SimError::stuck(now, STALL_MAX, self.missing()));
            }
        }
        if self.missing() > 0 {
            let waiting = self.tracks.iter().flatten().map(|track| track.waiters.len()).sum();
            let (at, missing, messages) = (seconds(self.agenda.now()), self.missing(), self.tally.messages);
            return Err(SimError::Deadlock { at, missing, messages, waiting });
        }
        self.check_ranks()?;
        self.tally.resent = self.ends.resent();
        self.tally.reroutes = self.control.as_ref().map_or(0, Control::reroutes);
        let senders = self.hosts.iter().filter(|host| host.sent > 0).count();
        let busiest = self.links.iter().map(|link| link.busy).max().unwrap_or(0);
        Ok(self.tally.report(self.agenda.now(), self.agenda.entered(), senders, busiest))
    }

    pub fn missing(&self) -> u64 {
        self.tally.messages - self.tally.delivered
    }

    /// Returns true if a run whose events never end is complete: manager drivers check their links for ever.
    fn is_over(&self) -> bool {
        let Traffic::Made { pacing, .. } = &self.plan.traffic else {
            return self.plan.faults.retry && self.missing() == 0 && self.tally.messages == self.calls();
        };
        let sent = match pacing {
            Pacing::Load { time, .. } => self.agenda.now() >= *time,
            Pacing::Local { time, .. } => self.agenda.now() >= *time,
            Pacing::Window { .. } => self.missing() == 0 && self.tally.messages > 0,
        };
        self.plan.faults.retry && sent && self.missing() == 0
    }

    fn calls(&self) -> u64 {
        match &self.plan.traffic {
            Traffic::Trace(calls) => calls.len() as u64,
            Traffic::Made { .. } | Traffic::Multicast(_) | Traffic::Collective(_) => 0,
        }
    }

    fn set_out(&mut self) {
        match &self.plan.traffic {
            Traffic::Trace(calls) => calls.iter().enumerate().for_each(|(n, call)| {
                self.agenda.at(call.at, Event::Inject(n));
            }),
            Traffic::Multicast(calls) => calls.iter().enumerate().for_each(|(n, call)| {
                self.agenda.at(call.at, Event::Inject(n));
            }),
            Traffic::Collective(_) => self.begin_collective(),
            Traffic::Made { pacing, bytes, .. } => {
                for host in 0..self.hosts.len() {
                    match pacing {
                        Pacing::Load { .. } => {
                            let first = interval(*bytes, self.rate, &mut self.rng);
                            self.agenda.at(first, Event::Inject(host));
                        }
                        Pacing::Window { open, count } => {
                            (0..*count.min(&(*open as u64))).for_each(|_| self.agenda.at(0, Event::Inject(host)));
                        }
                        Pacing::Local { .. } => self.agenda.at(0, Event::Inject(host)),
                    }
                }
            }
        }
        for outage in &self.plan.faults.outages {
            self.agenda.at(outage.down, Event::Cable(outage.cable, false));
            self.agenda.at(outage.up, Event::Cable(outage.cable, true));
        }
        if self.control.is_some() {
            (0..self.hosts.len()).for_each(|host| self.agenda.at(0, Event::Attend(host)));
        }
    }

    fn happen(&mut self, event: Event) -> Result<(), SimError> {
        match event {
            Event::Inject(n) => self.inject(n),
            Event::Arrive(track) => self.arrive(track),
            Event::Head(track, head) => self.head_arrives(track, head),
            Event::Awake(host, centre) => self.awake(host, centre),
            Event::Done(job) => self.done(job)?,
            Event::Come(message, bytes) => self.come(message, bytes),
            Event::Computed(host) => self.computed(host),
            Event::Cable(cable, up) => self.cable(cable, up),
            Event::Tend(host, peer) => self.tend(host, peer),
            Event::Attend(host) => self.attend(host)?,
        }
        Ok(())
    }
}
