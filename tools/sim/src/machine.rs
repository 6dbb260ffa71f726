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
use ntbring_endpoint::reliable::datagram::Datagram;
use ntbring_memory::Region;
use ntbring_ntb::timing::{Prices, TICKS_PER_NS};
use ntbring_ntb::Side;
use slab::Slab;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Memory in bytes that all lanes together may use; larger lanes are scaled down, so that each line represents several.
const LANE_MEMORY: usize = 512 << 20;

/// Time without any arrival after which a run with lossy links is given up.
const STALL_MAX: Time = ns(60_000_000_000);

/// Number of lanes in one direction of a link, for each channel and for each of bulk and urgent: one for each class
/// between forwarders, one to the ranks of the next host, one for packets of manager drivers.
pub(super) const KINDS: usize = CLASSES + 2;
pub(super) const DELIVER: usize = CLASSES;
pub(super) const ORDERS: usize = CLASSES + 1;

/// An event.
pub(super) enum Event {
    /// A host sends its next message.
    Inject(usize),
    /// The next packet of a lane has arrived.
    Arrive(usize),
    /// A head has reached a lane's producer.
    Head(usize, u64),
    /// A thread has woken up.
    Awake(usize, usize),
    /// A thread has finished a job.
    Done(usize),
    /// A message to several hosts, of that many bytes, has been delivered to one of them by its forwarder.
    Come(usize, u64),
    /// A link goes down or comes up.
    Cable(usize, bool),
    /// A connection is checked.
    Tend(usize, usize),
    /// A manager driver checks its links.
    Attend(usize),
}

/// Content of a packet.
pub(super) enum Load {
    /// A chunk of a message, which may be the last one.
    Chunk { message: usize, last: bool },
    /// A datagram of a connection, with a copy of the entry's bytes.
    Datagram { datagram: Datagram, bytes: Region, len: usize },
    /// A packet from a manager driver to its neighbour.
    Control(Vec<u8>),
    /// A message to several hosts: those that it has still to reach, nearest first, each with its message.
    Multicast(VecDeque<(usize, usize)>),
}

/// The unit that crosses links.
pub(super) struct Packet {
    pub src: usize,
    pub dst: usize,
    pub side: Side,
    pub hops: usize,
    pub bytes: u64,
    pub urgent: bool,
    /// True if it only acknowledges the arrival of a message.
    pub acknowledges: bool,
    /// True if a link has lost it.
    pub lost: bool,
    /// Time of its arrival at its present place.
    pub since: Time,
    pub load: Load,
}

/// An item that a host has to send by a link.
pub(super) enum Own {
    /// The rest of a message.
    Message(usize),
    /// A packet.
    Packet(Packet),
}

/// A message between two hosts.
pub(super) struct Message {
    pub src: usize,
    pub dst: usize,
    pub bytes: u64,
    /// Bytes that have left the source.
    pub sent: u64,
    /// Bytes that have arrived.
    pub come: u64,
    pub issued: Time,
    /// Its number in its flow.
    pub number: u64,
    /// For an acknowledgement: the acknowledged message's source, and the time at which it was issued.
    pub acknowledges: Option<(usize, Time)>,
}

/// A lane, and the work at both of its ends.
pub(super) struct Track {
    pub lane: Lane,
    /// Number of packets that have arrived.
    pub arrived: usize,
    pub latest: Time,
    /// Items that this host has to send by it.
    pub source: VecDeque<Own>,
    /// State of the input that takes packets from it, and of the input that is its source.
    pub states: [State; 2],
    /// Inputs that wait for room in it.
    pub waiters: VecDeque<Input>,
}

/// One direction of a link.
pub(super) struct Link {
    pub up: bool,
    pub free: Time,
    pub busy: Time,
    /// Events at its receiving end that are delayed because it is down.
    pub held: Vec<Event>,
    /// Index of its kind in the plan's links.
    pub kind: usize,
}

pub(super) struct Host {
    pub centres: [Centre; 2],
    /// Bytes per second at which its memory is being used.
    pub memory: u64,
    /// Number of messages that it has sent.
    pub sent: u64,
}

/// State of a run.
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
    /// Numbers of messages sent and arrived, by flow; acknowledgements are a flow of their own.
    pub flows: HashMap<(usize, usize, bool), (u64, u64)>,
    pub ends: Ends,
    pub control: Option<Control>,
    pub tally: Tally,
    pub rng: Rng,
    /// Bytes per second that each host is to send.
    pub rate: f64,
    start: Instant,
}

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
