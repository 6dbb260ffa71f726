//! A process's way into the ring, and what it then holds of it.

pub use super::card::Card;
use super::dress::{self, open_record, Dress};
pub use super::error::JoinError;
use super::guest::GuestAddress;
pub use super::link::Link;
use super::meeting::{died, Control, Meeting};
use super::membership::Membership;
use super::near::{find_reach, is_served};
use super::plan::{LocalPlan, WindowPlan};
use super::settings::JoinSettings;
use super::{crew, rank_doorbell, Topology, PROTOCOL_VERSION};
use ntbring_emu::{EmuHost, EmuPort, Introduction, MemoryLayout};
use ntbring_host::cores;
use ntbring_host::{check_space, place, size_of, FileAddress, Mailbox, Reach, Watch};
use ntbring_memory::{InWindow, OutWindow};
use ntbring_ntb::cut::cut;
use ntbring_ntb::{LinkState, Port, Side};
use ntbring_queue::{entry_max, Reliability, LINE};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What MPICH's shared-memory module may come to use for each of several ranks of a host, bytes:
/// 64 cells of 68 KiB and what goes with them.
const MPICH_SHM_PER_RANK: u64 = 64 * (68 << 10) + (256 << 10);

/// Words that a process may say of itself in its bulletin, and more on each rank.
const BULLETIN: usize = 128;
const BULLETIN_PER_RANK: usize = 3;

/// Where MPICH has its own shared memory.
const MPICH_SHM_DIR: &str = "/dev/shm";

/// A process that is about to join: it owns what it must own, and knows nobody yet.
pub struct Candidate {
    topology: Arc<Topology>,
    rank: u32,
    settings: JoinSettings,
    layout: MemoryLayout,
    local_plan: LocalPlan,
    memory: Option<EmuHost>,
    mailbox: (Mailbox, FileAddress),
    /// The threads that forward at this process's host, if it is its first rank.
    threads: usize,
}

impl Candidate {
    /// Checks that the job makes a ring whose windows fit, and creates the host's memory if this
    /// is the first rank of its host.
    pub fn new(topology: Topology, rank: u32, settings: impl Into<JoinSettings>) -> Result<Candidate, JoinError> {
        let settings = settings.into();
        let host = topology.host_of(rank);
        let local_plan = LocalPlan::new(topology.ranks_of(host).len(), settings.ring.local_lane);
        let managed = settings.ring.reliability == Reliability::Retry;
        let accounts = settings.links.model.is_some();
        let window = match topology.hosts() {
            1 => 0,
            _ => settings.ring.window.unwrap_or_else(|| {
                let room = size_of(&settings.host.shm_dir);
                WindowPlan::good_window(&topology, managed, accounts, room)
            }),
        };
        if topology.hosts() > 1 {
            WindowPlan::smallest_lane(&topology, window, managed)?;
        }
        if let Some(faults) = &settings.links.faults {
            dress::check(faults, &topology)?;
        }
        let layout = MemoryLayout { window, local: local_plan.total(), accounts };
        let memory = match topology.local_of(rank) {
            0 => Some(EmuHost::create(&settings.host.shm_dir, layout)?),
            _ => None,
        };
        let mailbox = Mailbox::create(&settings.host.shm_dir, BULLETIN + BULLETIN_PER_RANK * topology.size())?;
        let threads = crew::threads(settings.ring.xfer_threads, &topology, cores::own());
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
            let (job, faulty) = (pids[0], settings.links.faults.is_some());
            memory.introduce(Introduction { job, host: host as u8, hosts: topology.hosts() as u8, faulty })?;
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
        let (trusted, managed) =
            (settings.ring.reliability == Reliability::Off, settings.ring.reliability == Reliability::Retry);
        let served = is_served(&topology, &ports, trusted);
        let packet_max = match topology.hosts() {
            // Nothing is forwarded.
            0..4 if !served => usize::MAX,
            _ => {
                let lines = WindowPlan::smallest_lane(&topology, layout.window, managed)? / LINE;
                entry_max(lines) - settings.ring.reliability.trailer()
            }
        };
        let block_max = WindowPlan::block_max(&topology, layout.window);
        let announced = settings.ring.paper_model.announces();
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
                reliability: settings.ring.reliability,
                outages_before: port.outages().saturating_sub((port.link() == LinkState::Down).into()),
                port,
            });
        }
        let (links, threads) = (links.try_into().ok(), threads(host));
        let reach = match settings.kernel_copies && settings.ring.paper_model.is_production() {
            true => find_reach(&topology, rank, links.as_ref(), cards),
            false => vec![None; topology.size()],
        };
        let cores = cores::count(cards.iter().map(|c| c.cores));
        // Whatever the neighbours still have to read of the handshake has been written.
        injector.iter().for_each(|injector| injector.begin());
        Ok(Membership {
            notes: memory.notes()?,
            topology,
            rank,
            memory,
            local_plan,
            links,
            packet_max,
            block_max,
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
