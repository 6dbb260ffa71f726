//! The state of a run, and its events.

use super::agenda::{Agenda, Time};
use super::collective::Rank;
use super::connections::Ends;
use super::drivers::Control;
use super::lane::{Lane, Layout};
use super::net::{Net, CLASSES};
use super::parameters::Costs;
use super::plan::Plan;
use super::report::Tally;
use super::threads::{Centre, Input, Job, State};
use fastrand::Rng;
use ntbring_endpoint::reliable::datagram::Datagram;
use ntbring_memory::Region;
use ntbring_ntb::timing::Prices;
use ntbring_ntb::Side;
use slab::Slab;
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

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
    /// The rank of a host has copied or reduced.
    Computed(usize),
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
    /// The ranks of a collective.
    pub ranks: Vec<Rank>,
    pub tally: Tally,
    pub rng: Rng,
    /// Bytes per second that each host is to send.
    pub rate: f64,
    pub start: Instant,
}
