//! A process's way into the ring, and what it then holds of it.

pub use super::card::Card;
use super::dress::{self, open_record, Dress};
pub use super::error::JoinError;
use super::guest::GuestAddress;
pub use super::link::Link;
use super::meeting::{died, Control, Meeting};
use super::near::{find_reach, is_near, is_served};
use super::plan::{End, LocalPlan, WindowPlan};
use super::served::registry::Registry;
use super::ways::Ways;
use super::{cores, crew, rank_doorbell, Dead, Topology, PROTOCOL_VERSION};
use crate::ntb::cut::cut;
use crate::ntb::emu::{
    check_space, place, size_of, EmuHost, EmuPort, HostAddress, Introduction, Mailbox, MemoryLayout, Reach, Watch,
};
use crate::ntb::fault::Injector;
use crate::ntb::trace::Record;
use crate::ntb::{InWindow, LinkState, OutWindow, Port, Side, Vector};
use crate::queue::{entry_max, Consumer, Producer, Reliability, LINE};
use crate::settings::{Settings, SingleCopy};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What MPICH's shared-memory module may come to use for each of several ranks of a host, bytes:
/// 64 cells of 16 KiB and what goes with them.
const MPICH_SHM_PER_RANK: u64 = 2 << 20;

/// Words that a process may say of itself in its bulletin, and more on each rank.
const BULLETIN: usize = 128;
const BULLETIN_PER_RANK: usize = 3;

/// Where MPICH has its own shared memory.
const MPICH_SHM_DIR: &str = "/dev/shm";

/// A process that is about to join: it owns what it must own, and knows nobody yet.
pub struct Candidate {
    topology: Arc<Topology>,
    rank: u32,
    settings: Settings,
    layout: MemoryLayout,
    local_plan: LocalPlan,
    memory: Option<EmuHost>,
    mailbox: (Mailbox, HostAddress),
    /// The threads that forward at this process's host, if it is its first rank.
    threads: usize,
}

/// A process in the ring.
pub struct Membership {
    topology: Arc<Topology>,
    rank: u32,
    memory: EmuHost,
    local_plan: LocalPlan,
    /// Left and right; none in a ring of one host.
    links: Option<[Link; 2]>,
    packet_max: usize,
    watch: Watch,
    pids: Vec<u32>,
    /// The way around the windows to each rank that has one.
    reach: Vec<Option<Reach>>,
    cores: usize,
    /// Whether heads and tails are control writes of their own.
    announced: bool,
    /// Whether hosts have forwarders.
    served: bool,
    /// The threads that forward at this process's host.
    threads: usize,
    record: Option<Record>,
    /// None without faults.
    injector: Option<Arc<Injector>>,
    /// What processes of other jobs must know of each rank.
    guests: Vec<GuestAddress>,
    mailbox: Option<Mailbox>,
}

impl Candidate {
    /// Checks that the job makes a ring whose windows fit, and creates the host's memory if this
    /// is the first rank of its host.
    pub fn new(topology: Topology, rank: u32, settings: Settings) -> Result<Candidate, JoinError> {
        let host = topology.host_of(rank);
        let local_plan = LocalPlan::new(topology.ranks_of(host).len(), settings.local_lane);
        let managed = settings.reliability == Reliability::Retry;
        let accounts = settings.link_model.is_some();
        let window = match topology.hosts() {
            1 => 0,
            _ => settings.window.unwrap_or_else(|| {
                let room = size_of(&settings.shm_dir);
                WindowPlan::good_window(&topology, managed, accounts, room)
            }),
        };
        if topology.hosts() > 1 {
            WindowPlan::smallest_lane(&topology, window, managed)?;
        }
        if let Some(faults) = &settings.fault {
            dress::check(faults, &topology)?;
        }
        let layout = MemoryLayout { window, local: local_plan.total(), accounts };
        let memory = match topology.local_of(rank) {
            0 => Some(EmuHost::create(&settings.shm_dir, layout)?),
            _ => None,
        };
        let mailbox = Mailbox::create(&settings.shm_dir, BULLETIN + BULLETIN_PER_RANK * topology.size())?;
        let threads = crew::threads(settings.xfer_threads, &topology, cores::own());
        Ok(Candidate { topology: Arc::new(topology), rank, settings, layout, local_plan, memory, mailbox, threads })
    }

    /// Whether there is room for what MPICH's shared-memory module will use, on all hosts (they
    /// share this machine). To be asked when all hosts have their memory and before MPICH has.
    pub fn check_space(&self) -> Result<(), JoinError> {
        let shared = |host: usize| Some(self.topology.ranks_of(host).len() as u64).filter(|&n| n > 1);
        let ranks: u64 = (0..self.topology.hosts()).filter_map(shared).sum();
        Ok(check_space(Path::new(MPICH_SHM_DIR), ranks * MPICH_SHM_PER_RANK)?)
    }

    /// What the others must be told.
    pub fn card(&self) -> Card {
        let memory = self.memory.as_ref().map(EmuHost::address);
        Card {
            version: PROTOCOL_VERSION.into(),
            pid: std::process::id(),
            place: place(),
            threads: self.threads as u8,
            memory,
            mailbox: self.mailbox.1,
            probe: Reach::probe_address(),
            cores: cores::mine(),
        }
    }

    /// Joins, given everybody's card in rank order. Waits for the neighbours, but not for ever.
    pub fn join(self, cards: &[Card]) -> Result<Membership, JoinError> {
        let Candidate { topology, rank, settings, layout, local_plan, memory, mailbox, .. } = self;
        let host = topology.host_of(rank);
        let leader = topology.ranks_of(host)[0];
        if let Some(other) = (0..cards.len()).find(|&r| cards[r].version != u32::from(PROTOCOL_VERSION)) {
            let what = format!("it speaks protocol version {}, this rank {PROTOCOL_VERSION}", cards[other].version);
            return Err(JoinError::Address { rank: other as u32, what });
        }
        let here = place();
        if let Some(other) = cards.iter().position(|card| card.place != here) {
            let rank = other as u32;
            return Err(JoinError::Elsewhere { rank, host: topology.host_of(rank) });
        }
        let address = |host: usize| {
            let rank = topology.ranks_of(host)[0];
            let what = || "the first rank of its host gave no memory".to_string();
            cards[rank as usize].memory.ok_or_else(|| JoinError::Address { rank, what: what() })
        };
        let guest = |rank: u32| {
            let doorbell = rank_doorbell(topology.local_of(rank)) as u32;
            let host = address(topology.host_of(rank))?;
            Ok(GuestAddress { mailbox: cards[rank as usize].mailbox, host, doorbell })
        };
        let threads = |host: usize| usize::from(cards[topology.ranks_of(host)[0] as usize].threads);
        let guests: Vec<GuestAddress> = (0..topology.size() as u32).map(guest).collect::<Result<_, JoinError>>()?;
        let pids: Vec<u32> = cards.iter().map(|c| c.pid).collect();
        let others = (0..topology.size() as u32).filter(|&r| r != rank);
        let watch = Watch::new(others.map(|r| (r, pids[r as usize]))).map_err(|(r, _)| died(&topology, &pids, r))?;
        let memory = match memory {
            Some(memory) => memory,
            None => EmuHost::join(address(host)?, layout)?,
        };
        if rank == leader {
            let (job, faulty) = (pids[0], settings.fault.is_some());
            memory.introduce(Introduction { job, host: host as u8, hosts: topology.hosts() as u8, faulty });
        }
        mailbox.0.introduce(pids[0])?;
        let record = open_record(&settings, rank)?;
        let (mut ports, mut injector): (Vec<Arc<dyn Port>>, _) = (Vec::new(), None);
        if topology.hosts() > 1 {
            let port = |side| -> Result<EmuPort, JoinError> {
                Ok(memory.port(side, &address(topology.neighbour(host, side))?)?)
            };
            let pair = [port(Side::Left)?, port(Side::Right)?];
            injector = dress::injector(&settings, &topology, rank, &pair);
            let (record, injector) = (record.as_ref(), injector.clone());
            ports = Dress { settings: &settings, rank, record, injector }.pair(pair)?;
        }
        let meeting = Meeting {
            topology: &topology,
            host,
            window: layout.window,
            settings: &settings,
            watch: &watch,
            pids: &pids,
        };
        let control = Control { block: InWindow::new(memory.local()), out: OutWindow::new(memory.local()) };
        let offsets = if rank == leader {
            let result = meeting.neighbours(&ports);
            control.publish(&result);
            if result.is_err() {
                // Long enough for the neighbours to see for themselves what is wrong.
                std::thread::sleep(Duration::from_millis(300));
            }
            result?
        } else {
            meeting.leader(&control, leader)?
        };
        let (trusted, managed) = (settings.reliability == Reliability::Off, settings.reliability == Reliability::Retry);
        let served = is_served(&topology, &ports, trusted);
        let packet_max = match topology.hosts() {
            // Nothing is forwarded.
            0..4 if !served => usize::MAX,
            _ => {
                let lines = WindowPlan::smallest_lane(&topology, layout.window, managed)? / LINE;
                entry_max(lines) - settings.reliability.trailer()
            }
        };
        let announced = settings.paper_model.announces();
        let mut links = Vec::new();
        for (port, offset) in ports.into_iter().zip(offsets) {
            let side = port.side();
            let neighbour = topology.neighbour(host, side);
            let outgoing = port.outgoing(offset, layout.window)?;
            links.push(Link {
                neighbour,
                incoming: port.incoming(),
                outgoing: match port.max_transfer() {
                    Some(max) => cut(outgoing, max),
                    None => outgoing,
                },
                plan: WindowPlan::new(&topology, host, side, layout.window, managed)?,
                peer_plan: WindowPlan::new(&topology, neighbour, side.opposite(), layout.window, managed)?,
                announced,
                threads: threads(neighbour),
                reliability: settings.reliability,
                outages_before: port.outages().saturating_sub((port.link() == LinkState::Down).into()),
                port,
            });
        }
        let (links, threads) = (links.try_into().ok(), threads(host));
        let reach = match settings.single_copy {
            SingleCopy::Auto(_) | SingleCopy::Above(_) if settings.paper_model.is_production() => {
                find_reach(&topology, rank, links.as_ref(), cards)
            }
            _ => vec![None; topology.size()],
        };
        let cores = cores::count(cards.iter().map(|c| c.cores));
        // Whatever the neighbours still have to read of the handshake has been written.
        injector.iter().for_each(|injector| injector.begin());
        Ok(Membership {
            topology,
            rank,
            memory,
            local_plan,
            links,
            packet_max,
            watch,
            pids,
            reach,
            cores,
            announced,
            served,
            threads,
            record,
            injector,
            guests,
            mailbox: Some(mailbox.0),
        })
    }
}

impl Membership {
    /// The most bytes that a packet may have to fit into all lanes that it may have to pass.
    pub fn packet_max(&self) -> usize {
        self.packet_max
    }

    /// Who is where.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// Where a thread of this process is in no rank's way, if it should not run where the process does.
    pub fn cores_beside_ranks(&self) -> Option<cores::Cores> {
        cores::beside(&self.pids)
    }

    /// This process's rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// This process's host.
    pub fn host(&self) -> usize {
        self.topology.host_of(self.rank)
    }

    /// Left and right link; None in a ring of one host.
    pub fn links(&self) -> Option<[&Link; 2]> {
        self.links.as_ref().map(|[left, right]| [left, right])
    }

    /// What processes of other jobs must know of each rank.
    pub fn guest_addresses(&self) -> &[GuestAddress] {
        &self.guests
    }

    /// This process's mailbox. Panics if it was taken before.
    pub fn take_mailbox(&mut self) -> Mailbox {
        self.mailbox.take().expect("the mailbox is taken once")
    }

    /// A vector of this process's host.
    pub fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        match &self.links {
            // Through the port's decorators.
            Some([left, _]) => left.port.vector(doorbell),
            None => self.memory.vector(doorbell),
        }
    }

    /// Rings a doorbell of this process's own host.
    pub fn ring(&self, doorbell: usize) {
        self.memory.ring(doorbell);
    }

    /// The sending end of the lane to a rank of the same host, by its number there.
    pub fn local_producer(&self, to: usize) -> Producer {
        self.local_producer_of(End::Rank(self.topology.local_of(self.rank)), to)
    }

    /// The sending end of the lane from the host's forwarder to a rank of the host, by its number there. To be called once
    /// a lane, in one process.
    pub fn delivery_out(&self, to: usize) -> Producer {
        self.local_producer_of(End::Forwarder, to)
    }

    fn local_producer_of(&self, from: End, to: usize) -> Producer {
        let (plan, region) = (&self.local_plan, self.memory.local());
        let lane = OutWindow::new(region.part(plan.lane_offset(from, to), plan.lane_bytes()));
        let producer = Producer::new(lane, InWindow::new(region.part(plan.credit_offset(from, to), 8)));
        match self.announced {
            true => producer.announcing(OutWindow::new(region.part(plan.tail_offset(from, to), 8))),
            false => producer,
        }
    }

    /// The receiving end of the lane from a rank of the same host.
    pub fn local_consumer(&self, from: usize) -> Consumer {
        self.local_consumer_of(End::Rank(from))
    }

    /// The receiving end of the lane from the host's forwarder.
    pub fn delivery_in(&self) -> Consumer {
        self.local_consumer_of(End::Forwarder)
    }

    fn local_consumer_of(&self, from: End) -> Consumer {
        let (me, plan) = (self.topology.local_of(self.rank), &self.local_plan);
        let region = self.memory.local();
        let lane = InWindow::new(region.part(plan.lane_offset(from, me), plan.lane_bytes()));
        let consumer = Consumer::new(lane, OutWindow::new(region.part(plan.credit_offset(from, me), 8)));
        match self.announced {
            true => consumer.announced(InWindow::new(region.part(plan.tail_offset(from, me), 8))),
            false => consumer,
        }
    }

    /// The ranks of the job whose processes have ended, with their hosts and processes.
    pub fn dead(&self) -> Vec<Dead> {
        let dead = |rank| Dead { rank, host: self.topology.host_of(rank), pid: self.pids[rank as usize] };
        self.watch.dead().into_iter().map(dead).collect()
    }

    /// Whether this process may map memory of a rank: on its own host, or on a neighbour behind a
    /// coherent port.
    pub fn is_near(&self, rank: u32) -> bool {
        (rank as usize) < self.topology.size() && is_near(self.host(), self.links.as_ref(), self.topology.host_of(rank))
    }

    /// Whether hosts have forwarders, and serve segments for those that are not near.
    pub fn is_served(&self) -> bool {
        self.served
    }

    /// The threads that forward at this process's host, if it has forwarders.
    pub fn transfer_threads(&self) -> usize {
        self.threads
    }

    /// Where the ranks of this process's host tell its forwarder of their segments.
    pub fn registry(&self) -> Registry {
        let ranks = self.topology.ranks_of(self.host()).len();
        let region = self.memory.local().part(self.local_plan.registry_offset(), Registry::bytes(ranks));
        Registry::new(region, ranks)
    }

    /// Which way packets of this process's host go. Says nothing in jobs whose links are trusted.
    pub fn ways(&self) -> Ways {
        Ways::new(self.memory.notes())
    }

    /// What the emulated port on a side says of its link from now on, as `ntbring link` does it from outside. Only what
    /// is sent through ports with faults is lost then.
    pub fn set_link(&self, side: Side, state: LinkState) {
        self.memory.set_link(side, state);
    }

    /// The process of a rank.
    pub fn pid(&self, rank: u32) -> u32 {
        self.pids[rank as usize]
    }

    /// How to copy from and to a rank's memory, if that can be done at all.
    pub fn reach(&self, rank: u32) -> Option<Reach> {
        *self.reach.get(rank as usize)?
    }

    /// Whether the job has more ranks than cores.
    pub fn is_crowded(&self) -> bool {
        self.topology.size() > self.cores
    }

    /// The faults of this process's links; None without any.
    pub fn injector(&self) -> Option<&Arc<Injector>> {
        self.injector.as_ref()
    }

    /// Pushes out the record of accesses.
    pub fn flush_record(&self) {
        if let Some(record) = &self.record {
            if let Err(error) = record.flush() {
                log::warn!("NTBRING_TRACE: {error}");
            }
        }
    }
}
