//! A run: its state and its events.

use super::agenda::{ns, seconds, Agenda, Time};
use super::carry::Ends;
use super::control::Control;
use super::lane::{Lane, Layout};
use super::net::{Form, Net, CLASSES, PORTS};
use super::parameters::Costs;
use super::plan::{Plan, SimError};
use super::pool::{Centre, Input, Job, State};
use super::report::{Report, Tally};
use super::traffic::{interval, Pacing, Traffic};
use fastrand::Rng;
use ntbring_endpoint::carrier::parcel::Parcel;
use ntbring_memory::Region;
use ntbring_ntb::timing::{Prices, TICKS_PER_NS};
use ntbring_ntb::Side;
use slab::Slab;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Memory that all lanes together may take; beyond that, lines are made to stand for several.
const LANE_MEMORY: usize = 512 << 20;

/// How long nothing may come before a run with links that lose things is given up.
const PATIENCE: Time = ns(60_000_000_000);

/// Lanes of one direction of a link, for each channel and each of bulk and urgent: one for each class between forwarders, one
/// to the ranks of the next host, one for what stewards say.
pub(super) const KINDS: usize = CLASSES + 2;
pub(super) const DELIVER: usize = CLASSES;
pub(super) const ORDERS: usize = CLASSES + 1;

/// What happens.
pub(super) enum Event {
    /// A host sends its next message.
    Inject(usize),
    /// The next packet of a lane has arrived.
    Arrive(usize),
    /// A head has come to a lane's producer.
    Head(usize, u64),
    /// A thread is awake.
    Awake(usize, usize),
    /// A thread has done its job.
    Done(usize),
    /// A message to several hosts, of so many bytes, has come to one of them by its forwarder.
    Come(usize, u64),
    /// A link goes down or comes up.
    Cable(usize, bool),
    /// A connection is looked after.
    Tend(usize, usize),
    /// A steward is.
    Attend(usize),
}

/// What a packet carries.
pub(super) enum Load {
    /// A piece of a message, or the last one.
    Piece { message: usize, last: bool },
    /// Part of a connection, with a copy of the entry's bytes.
    Parcel { parcel: Parcel, bytes: Region, len: usize },
    /// What a steward says to its neighbour.
    Order(Vec<u8>),
    /// A message to several hosts: those that it has still to come to, nearest first, each with its message.
    Multicast(VecDeque<(usize, usize)>),
}

/// What crosses links as a whole.
pub(super) struct Packet {
    pub src: usize,
    pub dst: usize,
    pub side: Side,
    pub hops: usize,
    pub bytes: u64,
    pub urgent: bool,
    /// It says no more than that a message has come.
    pub acknowledges: bool,
    /// A link has swallowed it.
    pub lost: bool,
    /// When it came to where it is.
    pub since: Time,
    pub load: Load,
}

/// What a host has to send by a link.
pub(super) enum Own {
    /// A message, as far as it is not sent.
    Message(usize),
    /// A packet.
    Packet(Packet),
}

/// What hosts send each other.
pub(super) struct Message {
    pub src: usize,
    pub dst: usize,
    pub bytes: u64,
    /// Bytes that have left.
    pub sent: u64,
    /// Bytes that have come.
    pub come: u64,
    pub issued: Time,
    /// Its number in its flow.
    pub number: u64,
    /// If it says that another one has come: which, of what size.
    pub acknowledges: Option<(usize, Time)>,
}

/// A lane, and both ends' work on it.
pub(super) struct Track {
    pub lane: Lane,
    /// Packets that have arrived.
    pub arrived: usize,
    pub latest: Time,
    /// What this host has to send by it.
    pub source: VecDeque<Own>,
    /// Of the input that takes from it, and of the one that its source is.
    pub states: [State; 2],
    /// Inputs that wait for room in it.
    pub waiters: VecDeque<Input>,
}

/// One direction of a link.
pub(super) struct Link {
    pub up: bool,
    pub free: Time,
    pub busy: Time,
    /// What came to its end while it was down.
    pub held: Vec<Event>,
    /// Which of the plan's links it is.
    pub kind: usize,
}

pub(super) struct Host {
    pub centres: [Centre; 2],
    /// Bytes a second by which its memory is being used.
    pub memory: u64,
    /// Messages that it has sent.
    pub sent: u64,
}

/// A run.
pub(super) struct Simulation<'a> {
    pub plan: &'a Plan,
    pub net: Net,
    pub costs: Vec<Costs>,
    pub prices: Vec<Prices>,
    pub agenda: Agenda<Event>,
    pub layout: Layout,
    pub tracks: Vec<Option<Box<Track>>>,
    pub links: Vec<Link>,
    pub hosts: Vec<Host>,
    pub packets: Slab<Packet>,
    pub messages: Slab<Message>,
    pub jobs: Slab<Job>,
    /// Messages sent and come, by flow; acknowledgements are a flow of their own.
    pub flows: HashMap<(usize, usize, bool), (u64, u64)>,
    pub ends: Ends,
    pub control: Option<Control>,
    pub tally: Tally,
    pub rng: Rng,
    /// Bytes a second that each host is to send.
    pub rate: f64,
    start: Instant,
}

impl<'a> Simulation<'a> {
    /// A run that is about to begin.
    pub fn new(plan: &'a Plan) -> Result<Simulation<'a>, SimError> {
        plan.check()?;
        let net = Net::new(plan.form, plan.protocol.one_way)?;
        let hosts = plan.form.hosts();
        let tracks = hosts * PORTS * KINDS * 2 * plan.threads;
        // Urgent lanes and those of stewards hold little, and most lanes of most networks are never used.
        let ports = if matches!(plan.form, Form::Torus(..)) { PORTS } else { 2 };
        let used = hosts * ports * (CLASSES + 1) * plan.threads;
        let head = if plan.faults.retry { Parcel::HEAD } else { 0 };
        let packet = plan.protocol.chunk as usize + plan.protocol.header as usize + head;
        let layout = Layout::new(plan.protocol.lane as usize, packet, used, LANE_MEMORY)?;
        let kind = |link: usize| match net.form().peer(link / PORTS, link % PORTS) {
            // A cable has the kind of the host to its left.
            Some((peer, _)) if link % PORTS % 2 == 0 => peer % plan.links.len(),
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
                    return wrong("warming up must end before the measurement does");
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
            rng: Rng::with_seed(plan.seed),
            rate,
            start: Instant::now(),
            plan,
            net,
        })
    }

    /// The present, for code that knows instants. Only differences matter to it.
    pub fn instant(&self) -> Instant {
        self.start + Duration::from_nanos(self.agenda.now() / TICKS_PER_NS)
    }

    /// Runs until everything has come.
    pub fn run(mut self) -> Result<Report, SimError> {
        self.set_out();
        while !self.is_over() {
            let Some(event) = self.agenda.take() else { break };
            self.happen(event)?;
            let now = self.agenda.now();
            if self.plan.faults.retry && self.missing() > 0 && now > self.tally.last.saturating_add(PATIENCE) {
                return Err(SimError::stuck(now, PATIENCE, self.missing()));
            }
        }
        if self.missing() > 0 {
            let waiting = self.tracks.iter().flatten().map(|track| track.waiters.len()).sum();
            let (at, missing, messages) = (seconds(self.agenda.now()), self.missing(), self.tally.messages);
            return Err(SimError::Deadlock { at, missing, messages, waiting });
        }
        self.tally.resent = self.ends.resent();
        self.tally.reroutes = self.control.as_ref().map_or(0, Control::reroutes);
        let senders = self.hosts.iter().filter(|host| host.sent > 0).count();
        let busiest = self.links.iter().map(|link| link.busy).max().unwrap_or(0);
        Ok(self.tally.report(self.agenda.now(), self.agenda.entered(), senders, busiest))
    }

    pub fn missing(&self) -> u64 {
        self.tally.messages - self.tally.delivered
    }

    /// Whether a run that never comes to rest has done what it had to: stewards look at their links for ever.
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
            Traffic::Made { .. } | Traffic::Multicast(_) => 0,
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
            Event::Cable(cable, up) => self.cable(cable, up),
            Event::Tend(host, peer) => self.tend(host, peer),
            Event::Attend(host) => self.attend(host)?,
        }
        Ok(())
    }
}
