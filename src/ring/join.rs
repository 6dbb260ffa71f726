//! Joining the ring: from a candidate with its own memory to a member with links to its neighbours.

pub use super::card::{Card, HostCard};
use super::dress::{self, open_record, Dress, Pair};
pub use super::error::JoinError;
use super::guest::GuestAddress;
pub use super::link::Link;
use super::liveness::{Channel, Monitor, Table};
use super::meeting::{died, Control, Meeting};
use super::membership::Membership;
use super::near::{find_reach, is_monitored, is_served, shortcuts_of};
use super::plan::{LocalPlan, WindowPlan};
use super::settings::JoinSettings;
use super::{crew, rank_doorbell, Topology, PROTOCOL_VERSION};
use ntbring_host::cores;
use ntbring_host::{check_space, place, size_of, FileAddress, HostMemory, Introduction, Mailbox, Reach, Watch};
use ntbring_memory::{InWindow, Mapping, OutWindow};
use ntbring_ntb::cut::cut;
use ntbring_ntb::fabric::{Backend, Fabric, OpenPort, Windows};
use ntbring_ntb::notice::{self, Notices};
use ntbring_ntb::settings::Device;
use ntbring_ntb::{LinkState, Port, Side};
use ntbring_queue::{entry_max, Reliability, LINE};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of shared memory that MPICH's shared-memory module may allocate for each of several ranks of a host: 64 cells
/// of 68 KiB and their metadata.
const MPICH_SHM_PER_RANK: u64 = 64 * (68 << 10) + (256 << 10);

/// Size of a process's bulletin in words: a fixed part, and a part for each rank.
const BULLETIN: usize = 128;
const BULLETIN_PER_RANK: usize = 3;

/// Directory in which MPICH creates its shared memory.
const MPICH_SHM_DIR: &str = "/dev/shm";

/// A process that is about to join: it has allocated its own resources and is not connected to any peer yet.
pub struct Candidate {
    topology: Arc<Topology>,
    rank: u32,
    settings: JoinSettings,
    backend: Arc<dyn Backend>,
    windows: Windows,
    local_plan: LocalPlan,
    /// Windows and host memory; present only in the first rank of a host, which creates them.
    created: Option<(Box<dyn Fabric>, HostMemory)>,
    mailbox: (Mailbox, FileAddress),
    /// Number of transfer threads of this process's host, if the process is its first rank.
    threads: usize,
}

impl Candidate {
    /// Checks that the job makes a ring whose windows fit, and creates the host's memory if this is the first rank of
    /// its host.
    pub fn new(topology: Topology, rank: u32, settings: impl Into<JoinSettings>) -> Result<Candidate, JoinError> {
        let settings = settings.into();
        let backend = ntbring_devices::open(&settings.links.device, &settings.host.shm_dir)?;
        Candidate::with_backend(topology, rank, settings, backend)
    }

    /// As [`Candidate::new`], with a backend that the caller provides.
    pub fn with_backend(
        topology: Topology,
        rank: u32,
        settings: JoinSettings,
        backend: Arc<dyn Backend>,
    ) -> Result<Candidate, JoinError> {
        let host = topology.host_of(rank);
        let local_plan = LocalPlan::new(&topology, host, settings.ring.local_lane);
        let managed = settings.ring.reliability == Reliability::Retry;
        let accounts = settings.links.model.is_some();
        let window = match topology.hosts() {
            1 => 0,
            _ => settings.ring.window.unwrap_or_else(|| {
                let room = size_of(match &settings.links.device {
                    Device::Shared(dir) => dir,
                    _ => &settings.host.shm_dir,
                });
                WindowPlan::good_window(&topology, managed, accounts, room)
            }),
        };
        if topology.hosts() > 1 {
            WindowPlan::smallest_lane(&topology, window, managed)?;
        }
        if let Some(faults) = &settings.links.faults {
            dress::check(faults, &topology)?;
        }
        let windows = Windows { bytes: window, accounts };
        let created = match topology.local_of(rank) {
            0 => Some((backend.create(windows)?, HostMemory::create(&settings.host.shm_dir, local_plan.total())?)),
            _ => None,
        };
        let mailbox = Mailbox::create(&settings.host.shm_dir, BULLETIN + BULLETIN_PER_RANK * topology.size())?;
        let threads = crew::threads(settings.ring.xfer_threads, &topology, cores::own());
        Ok(Candidate {
            topology: Arc::new(topology),
            rank,
            settings,
            backend,
            windows,
            local_plan,
            created,
            mailbox,
            threads,
        })
    }

    /// Checks that all hosts of this machine have room for the shared memory that MPICH's shared-memory module will
    /// allocate; with `NTBRING_DEVICE=emu:DIR` only the own host is known to share it. To be called when all hosts have their memory and before MPICH has allocated its own.
    pub fn check_space(&self) -> Result<(), JoinError> {
        let own = self.topology.host_of(self.rank);
        let is_here = |host: &usize| *host == own || !matches!(self.settings.links.device, Device::Shared(_));
        let shared = |host: usize| Some(self.topology.ranks_of(host).len() as u64).filter(|&n| n > 1);
        let ranks: u64 = (0..self.topology.hosts()).filter(is_here).filter_map(shared).sum();
        Ok(check_space(Path::new(MPICH_SHM_DIR), ranks * MPICH_SHM_PER_RANK)?)
    }

    /// Returns the card that all other ranks need to join with this one.
    pub fn card(&self) -> Card {
        let host = |(fabric, memory): &(Box<dyn Fabric>, HostMemory)| HostCard {
            fabric: fabric.address(),
            memory: memory.address(),
        };
        Card {
            version: PROTOCOL_VERSION.into(),
            pid: std::process::id(),
            place: place(),
            threads: self.threads as u8,
            host: self.created.as_ref().map(host),
            mailbox: self.mailbox.1,
            probe: Reach::probe_address(),
            cores: cores::mine(),
        }
    }

    /// Joins the ring, given the cards of all ranks in rank order. Waits for the neighbours, at most for the connect
    /// timeout.
    pub fn join(self, cards: &[Card]) -> Result<Membership, JoinError> {
        let Candidate { topology, rank, settings, backend, windows, local_plan, created, mailbox, .. } = self;
        let host = topology.host_of(rank);
        let leader = topology.ranks_of(host)[0];
        if let Some(other) = (0..cards.len()).find(|&r| cards[r].version != u32::from(PROTOCOL_VERSION)) {
            let what = format!("it speaks protocol version {}, this rank {PROTOCOL_VERSION}", cards[other].version);
            return Err(JoinError::Address { rank: other as u32, what });
        }
        let here = place();
        if let Some(&rank) = topology.ranks_of(host).iter().find(|&&rank| cards[rank as usize].place != here) {
            return Err(JoinError::Elsewhere { rank, host });
        }
        let address = |host: usize| {
            let rank = topology.ranks_of(host)[0];
            let what = || "the first rank of its host gave no memory".to_string();
            cards[rank as usize].host.ok_or_else(|| JoinError::Address { rank, what: what() })
        };
        let guest = |rank: u32| {
            let doorbell = rank_doorbell(topology.local_of(rank)) as u32;
            let host = address(topology.host_of(rank))?.fabric;
            Ok(GuestAddress {
                mailbox: cards[rank as usize].mailbox,
                place: cards[rank as usize].place,
                host,
                doorbell,
            })
        };
        let threads = |host: usize| usize::from(cards[topology.ranks_of(host)[0] as usize].threads);
        let guests: Vec<GuestAddress> = (0..topology.size() as u32).map(guest).collect::<Result<_, JoinError>>()?;
        let pids: Vec<u32> = cards.iter().map(|c| c.pid).collect();
        let (fabric, memory) = match created {
            Some(created) => created,
            None => {
                let card = address(host)?;
                (backend.attach(&card.fabric, windows)?, HostMemory::open(card.memory, local_plan.total())?)
            }
        };
        if rank == leader {
            let (job, faulty) = (pids[0], settings.links.faults.is_some());
            let is = Introduction { job, host: host as u8, hosts: topology.hosts() as u8, faulty };
            fabric.introduce(is)?;
            memory.introduce(is)?;
        }
        mailbox.0.introduce(pids[0])?;
        let record = open_record(&settings, rank)?;
        let (mut ports, mut injector): (Vec<Arc<dyn Port>>, _) = (Vec::new(), None);
        if topology.hosts() > 1 {
            let port = |side| -> Result<OpenPort, JoinError> {
                Ok(fabric.port(side, &address(topology.neighbour(host, side))?.fabric)?)
            };
            let pair = Pair::new([port(Side::Left)?, port(Side::Right)?], &settings)?;
            injector = dress::injector(&settings, &topology, rank, &pair);
            let (record, injector) = (record.as_ref(), injector.clone());
            ports = Dress { settings: &settings, rank, record, injector }.pair(pair)?;
        }
        let monitored = ports.iter().any(|port| is_monitored(port.as_ref(), &settings));
        let others = (0..topology.size() as u32).filter(|&r| r != rank && (!monitored || topology.host_of(r) == host));
        let watch = Watch::new(others.map(|r| (r, pids[r as usize]))).map_err(|(r, _)| died(&topology, &pids, r))?;
        let meeting = Meeting {
            topology: &topology,
            host,
            window: windows.bytes,
            settings: &settings,
            watch: &watch,
            pids: &pids,
        };
        let control = Control { block: InWindow::new(memory.bytes()), out: OutWindow::new(memory.bytes()) };
        let offsets = if rank == leader {
            let result = meeting.neighbours(&ports);
            control.publish(&result);
            if result.is_err() {
                // Long enough for the neighbours to find the error for themselves.
                std::thread::sleep(Duration::from_millis(300));
            }
            result?
        } else {
            meeting.leader(&control, leader)?
        };
        let managed = settings.ring.reliability == Reliability::Retry;
        let served = is_served(&topology, &ports, &settings);
        let packet_max = match topology.hosts() {
            // No packet is forwarded in such a ring, so none has to fit a lane on the way.
            0..4 if !served => usize::MAX,
            _ => {
                let lines = WindowPlan::smallest_lane(&topology, windows.bytes, managed)? / LINE;
                entry_max(lines) - settings.ring.reliability.trailer()
            }
        };
        let block_max = WindowPlan::block_max(&topology, windows.bytes);
        let (mut links, mut channels) = (Vec::new(), Vec::new());
        for (port, offset) in ports.into_iter().zip(offsets) {
            let side = port.side();
            let neighbour = topology.neighbour(host, side);
            let outgoing = port.outgoing(offset, windows.bytes)?;
            let peer_plan = WindowPlan::new(&topology, neighbour, side.opposite(), windows.bytes, managed)?;
            let plan = WindowPlan::new(&topology, host, side, windows.bytes, managed)?;
            // With several ranks on a host, boards may be in different rounds. A view is of use only if the neighbour passes
            // blocks on to this side.
            let sees = shortcuts_of(port.as_ref(), &settings).windows && topology.hosts() == topology.size();
            let view = match sees && topology.reach(side == Side::Left) > 1 {
                true => fabric.view(side, &address(neighbour)?.fabric)?,
                false => None,
            };
            let view_plan = WindowPlan::new(&topology, neighbour, side, windows.bytes, managed)?;
            if monitored {
                let bare = fabric.port(side, &address(neighbour)?.fabric)?;
                channels.push(Channel::new(&topology, bare, offset, windows.bytes, [plan, peer_plan])?);
            }
            links.push(Link {
                neighbour,
                incoming: port.incoming(),
                outgoing: match port.caps().max_transfer {
                    Some(max) => cut(outgoing, max),
                    None => outgoing,
                },
                plan,
                peer_plan,
                view: view.map(|window| (view_plan, window)),
                threads: threads(neighbour),
                reliability: settings.ring.reliability,
                shortcuts: shortcuts_of(port.as_ref(), &settings),
                near: port.caps().mapping == Mapping::Coherent,
                outages_before: port.outages().saturating_sub((port.link() == LinkState::Down).into()),
                port,
            });
        }
        let mut notices = None;
        if let [left, right] = &channels[..] {
            // No process may look into the registers of another host to find out whether a ring is needed.
            let state = memory.bytes().part(local_plan.notices_offset(), notice::STATE);
            let requests = Arc::new(Notices::new(state, [left.notices(), right.notices()]));
            links.iter_mut().for_each(|link: &mut Link| link.port = requests.port(link.port.clone()));
            notices = Some(requests);
        }
        let (links, threads) = (links.try_into().ok(), threads(host));
        let reach = match settings.kernel_copies {
            true => find_reach(&topology, rank, links.as_ref(), cards),
            false => vec![None; topology.size()],
        };
        let near: Vec<&Card> = cards.iter().filter(|card| card.place == here).collect();
        let cores = cores::count(near.iter().map(|card| card.cores));
        let near_pids = near.iter().map(|card| card.pid).collect();
        let (silence, leftover) = (settings.ring.silence, fabric.leftover());
        let table = monitored.then(|| Table::new(&topology, &memory.bytes(), &local_plan));
        let monitor = table.clone().zip(notices).filter(|_| rank == leader).map(|(table, notices)| {
            Monitor::new(&topology, host, &pids, (channels, notices), table, silence, leftover)
        });
        if let Some(set) = settings.host.thread_cores.as_ref().filter(|set| rank == leader && !cores::are_usable(set)) {
            log::warn!(
                "NTBRING_THREAD_CORES: this process may use none of the cores {set:?}; its threads stay where they are"
            );
        }
        // All that the neighbours still have to read of the handshake has been written, so faults may begin.
        injector.iter().for_each(|injector| injector.begin());
        Ok(Membership {
            topology,
            rank,
            backend,
            fabric,
            memory,
            local_plan,
            links,
            packet_max,
            block_max,
            watch,
            table,
            monitor,
            silence,
            pids,
            near_pids,
            reach,
            cores,
            thread_cores: settings.host.thread_cores,
            served,
            threads,
            record,
            injector,
            guests,
            mailbox: Some(mailbox.0),
        })
    }
}
