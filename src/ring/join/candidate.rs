//! A process that joins the ring: it allocates its own resources, publishes a card, and connects to its neighbours when
//! it has the cards of all ranks.

use super::card::{Card, HostCard};
use super::cards::Cards;
use super::connect::{ask_for_rings, Connect};
use super::decorate;
use super::error::JoinError;
use super::greeting::OFFSET_UNIT;
use super::join_handshakes::{died, Control, JoinHandshakes};
use super::kernel_copy::probe_kernel_copies;
use super::ports::Ports;
use crate::forwarding::thread_split;
use crate::layout::{DirectLayout, LocalLayout, WindowLayout};
use crate::liveness::{Channel, Monitor};
use crate::membership::{Adapters, DirectLanes, Limits, Membership, Peers, Processors, Shared};
use crate::policy::LinkPolicy;
use crate::protocol::PROTOCOL_VERSION;
use crate::settings::JoinSettings;
use crate::topology::Topology;
use ntbring_host::cores;
use ntbring_host::{
    check_space, host_name, machine, size_of, FileAddress, FileTag, HostMemory, KernelCopy, Mailbox, Place, Watch,
};
use ntbring_memory::{InWindow, OutWindow};
use ntbring_ntb::fabric::{Backend, Fabric, Windows};
use ntbring_ntb::notice::Notices;
use ntbring_ntb::settings::Device;
use ntbring_ntb::{Port, PortCaps};
use ntbring_queue::{entry_max, LINE};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Bytes of shared memory that MPICH's shared-memory module may allocate for each of several ranks of a host: 64 cells
/// of 68 KiB and their metadata.
const MPICH_SHM_PER_RANK: u64 = 64 * (68 << 10) + (256 << 10);

/// Size of a process's stats page in words: a fixed part, and a part for each rank.
const STATS_PAGE: usize = 768;
const STATS_PAGE_PER_RANK: usize = 3;

/// Directory in which MPICH creates its shared memory.
const MPICH_SHM_DIR: &str = "/dev/shm";

/// Time for which an error that follows another process's death is held back.
const DEATH_PAUSE: Duration = Duration::from_secs(1);

/// A process that is about to join: it has allocated its own resources and is not connected to any peer yet.
pub struct Candidate {
    topology: Arc<Topology>,
    rank: u32,
    settings: JoinSettings,
    backend: Arc<dyn Backend>,
    windows: Windows,
    local_layout: LocalLayout,
    /// Windows and host memory; present only in the first rank of a host, which creates them.
    created: Option<(Box<dyn Fabric>, HostMemory)>,
    mailbox: (Mailbox, FileAddress),
    /// Number of forwarder threads of this process's host, if the process is its first rank.
    threads: usize,
    /// Hash of the host's name if hosts of one machine count as separate; otherwise 0.
    host_name: u32,
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
        let local_layout = LocalLayout::new(&topology, host, settings.ring.local_lane);
        let managed = settings.ring.reliability.retransmits();
        let accounts = settings.links.model.is_some();
        let window = match topology.hosts() {
            1 => 0,
            _ => fit_window(backend.caps(), host, settings.ring.window, || {
                let room = size_of(match &settings.links.device {
                    Device::Shared(dir) => dir,
                    _ => &settings.host.shm_dir,
                });
                WindowLayout::good_window(&topology, managed, accounts, room)
            })?,
        };
        if topology.hosts() > 1 {
            WindowLayout::smallest_lane(&topology, window, managed)?;
        }
        if let Some(faults) = &settings.links.faults {
            decorate::check(faults, &topology)?;
        }
        let windows = Windows { bytes: window, accounts, ports: settings.ring.ports.list() };
        let created = match topology.local_of(rank) {
            0 => Some((backend.create(windows)?, HostMemory::create(&settings.host.shm_dir, local_layout.total())?)),
            _ => None,
        };
        let words = STATS_PAGE + STATS_PAGE_PER_RANK * topology.size();
        let direct = DirectLayout::new(&topology, settings.ring.local_lane);
        let mailbox = Mailbox::create_with_area(&settings.host.shm_dir, words, direct.total())?;
        let host_name = if settings.links.shortcuts.processes { 0 } else { host_name() };
        let threads = thread_split::threads(settings.ring.forwarder_threads, &topology, cores::own());
        Ok(Candidate {
            topology: Arc::new(topology),
            rank,
            settings,
            backend,
            windows,
            local_layout,
            created,
            mailbox,
            threads,
            host_name,
        })
    }

    /// Returns this candidate with another hash of the name of its host ([`ntbring_host::host_name`]): for hosts that
    /// are emulated in one process.
    pub fn on_host(mut self, host_name: u32) -> Candidate {
        self.host_name = host_name;
        self
    }

    /// Checks that all hosts of this machine have room for the shared memory that MPICH's shared-memory module will
    /// allocate; with `NTBRING_DEVICE=emu:DIR` only the own host is known to share it. To be called when all hosts have
    /// their memory and before MPICH has allocated its own.
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
            ports: self.settings.ring.ports,
            memory: memory.address(),
        };
        Card {
            version: PROTOCOL_VERSION.into(),
            pid: std::process::id(),
            machine: machine(),
            host_name: self.host_name,
            threads: self.threads as u8,
            device: self.settings.links.device.kind(),
            host: self.created.as_ref().map(host),
            mailbox: self.mailbox.1,
            probe: KernelCopy::probe_address(),
            cores: cores::mine(),
        }
    }

    /// Joins the ring, given the cards of all ranks in rank order. Waits for the neighbours, at most for the connect
    /// timeout.
    pub fn join(self, cards: &[Card]) -> Result<Membership, JoinError> {
        let result = self.try_join(cards);
        if result.as_ref().is_err_and(JoinError::follows_a_death) {
            // Launchers end a job in which a process has died, and name that process; this error, or what the host's first
            // rank has reported, would hide it.
            std::thread::sleep(DEATH_PAUSE);
        }
        result
    }

    fn try_join(mut self, cards: &[Card]) -> Result<Membership, JoinError> {
        let topology = self.topology.clone();
        let (rank, host) = (self.rank, topology.host_of(self.rank));
        let cards = Cards::check(&topology, rank, cards)?;
        let doorbells = self.backend.caps().usable_doorbells();
        let (pids, external_peers) = (cards.pids(), cards.external_peers(doorbells.max(1))?);
        let (fabric, shared) = self.open_host(cards)?;
        let Ports { ports, injector, record } = Ports::open(fabric.as_ref(), &topology, rank, &self.settings, cards)?;
        let policy = LinkPolicy::new(topology.hosts(), &ports, &self.settings);
        self.introduce(fabric.as_ref(), &shared, cards, false)?;
        self.introduce_process(fabric.as_ref(), policy, cards)?;
        let watch = self.watch(policy, &pids)?;
        let offsets = self.meet(policy, &ports, &shared, (&watch, &pids), cards)?;
        self.introduce(fabric.as_ref(), &shared, cards, true)?;
        let limits = self.limits(policy)?;
        let connect = self.connect(policy, fabric.as_ref(), cards);
        let mut links = connect.links(ports, &offsets)?;
        let table = policy.is_monitored().then(|| shared.table(&topology));
        // Two processes cannot use the same port, so the monitor has channels of its own.
        let leads = rank == topology.ranks_of(host)[0];
        let is_monitored = table.is_some();
        let [channels, for_monitor] = [is_monitored, is_monitored && leads].map(|needed| match needed {
            true => connect.channels(&offsets),
            false => Ok(Vec::new()),
        });
        if let Some(notices) = notices(&channels?, &shared) {
            ask_for_rings(&mut links, &notices);
        }
        let silence = self.settings.ring.keepalive_timeout;
        let channels = for_monitor?;
        let monitor = table.clone().zip(notices(&channels, &shared)).map(|(table, notices)| {
            Monitor::new(&topology, host, &pids, (channels, notices), table, silence, fabric.leftover())
        });
        let kernel_copy = match self.settings.kernel_copies {
            true => probe_kernel_copies(&topology, rank, policy, cards),
            false => vec![None; topology.size()],
        };
        let direct = DirectLayout::new(&topology, self.settings.ring.local_lane);
        let direct_lanes = policy.shortcuts().lanes.then(|| DirectLanes::new(direct, self.mailbox.0.share())).flatten();
        let processors = self.processors(cards);
        // All that the neighbours still have to read of the handshake has been written, so faults may begin.
        injector.iter().for_each(|injector| injector.begin());
        let links = links.try_into().ok();
        Ok(Membership {
            rank,
            policy,
            limits,
            threads: cards.threads(host),
            adapters: Adapters {
                backend: self.backend,
                fabric,
                ports: self.settings.ring.ports,
                doorbells: doorbells.max(1),
                links,
                injector,
                record,
            },
            shared,
            peers: Peers { pids, external_peers, kernel_copy, watch, table, silence },
            processors,
            monitor,
            gateway_mailbox: Mutex::new((leads && policy.is_forwarded()).then(|| self.mailbox.0.share())),
            mailbox: Some(self.mailbox.0),
            direct_lanes,
            shm_dir: self.settings.host.shm_dir,
            topology,
        })
    }

    /// Opens the windows and the memory of the host, unless this process has created them.
    fn open_host(&mut self, cards: Cards) -> Result<(Box<dyn Fabric>, Shared), JoinError> {
        let layout = self.local_layout;
        let (fabric, memory) = match self.created.take() {
            Some(created) => created,
            None => {
                let host = self.topology.host_of(self.rank);
                let card = cards.host(host)?;
                if card.ports != self.settings.ring.ports {
                    let (mine, first) = (self.settings.ring.ports, card.ports);
                    return Err(JoinError::Ports { host, rank: self.rank, mine, first });
                }
                (self.backend.attach(&card.fabric, self.windows)?, HostMemory::open(card.memory, layout.total())?)
            }
        };
        Ok((fabric, Shared { memory, layout }))
    }

    /// Returns true if this process is the first rank of its host.
    fn leads(&self) -> bool {
        self.topology.local_of(self.rank) == 0
    }

    /// Records the host's place in the job for tools, and whether it has joined.
    fn introduce(&self, fabric: &dyn Fabric, shared: &Shared, cards: Cards, joined: bool) -> Result<(), JoinError> {
        if !self.leads() {
            return Ok(());
        }
        let (host, hosts) = (self.topology.host_of(self.rank) as u8, self.topology.hosts() as u8);
        let faulty = self.settings.links.faults.is_some();
        let is = FileTag { job: cards.of(0).pid, host, hosts, faulty, joined };
        fabric.introduce(is)?;
        Ok(shared.memory.introduce(is)?)
    }

    /// Records the process's place in the job, for tools and for processes of other jobs.
    fn introduce_process(&self, fabric: &dyn Fabric, policy: LinkPolicy, cards: Cards) -> Result<(), JoinError> {
        let gateway = (self.leads() && policy.is_forwarded()).then(|| fabric.address().0);
        let place = Place { job: cards.job(), machine: machine(), host_name: self.host_name };
        Ok(self.mailbox.0.introduce(cards.of(0).pid, place, gateway.as_ref())?)
    }

    /// Watches the processes of other ranks: all of them, or those of the own host if hosts have monitors.
    fn watch(&self, policy: LinkPolicy, pids: &[u32]) -> Result<Watch, JoinError> {
        let host = self.topology.host_of(self.rank);
        let is_watched = |&r: &u32| r != self.rank && (!policy.is_monitored() || self.topology.host_of(r) == host);
        let others = (0..self.topology.size() as u32).filter(is_watched);
        Watch::new(others.map(|r| (r, pids[r as usize]))).map_err(|(r, _)| died(&self.topology, pids, r))
    }

    /// Runs the handshakes with the neighbours in the first rank of a host, and publishes their result to the host's
    /// other ranks. Returns the offsets of the windows that the neighbours provide.
    fn meet(
        &self,
        policy: LinkPolicy,
        ports: &[Arc<dyn Port>],
        shared: &Shared,
        (watch, pids): (&Watch, &[u32]),
        cards: Cards,
    ) -> Result<Vec<u64>, JoinError> {
        let (topology, settings, window) = (&*self.topology, &self.settings, self.windows.bytes);
        let host = topology.host_of(self.rank);
        let doorbells = self.backend.caps().usable_doorbells();
        let join_handshakes =
            JoinHandshakes { topology, host, window, settings, policy, doorbells, watch, pids, cards };
        let memory = shared.memory.bytes();
        let control = Control { block: InWindow::new(memory.clone()), out: OutWindow::new(memory) };
        if !self.leads() {
            return join_handshakes.leader(&control, topology.ranks_of(host)[0]);
        }
        let result = join_handshakes.neighbours(ports);
        control.publish(&result);
        if result.is_err() {
            // The pause is long enough for the neighbours to detect the error themselves.
            std::thread::sleep(Duration::from_millis(300));
        }
        result
    }

    /// Returns the most bytes of a packet that fits all lanes on its way, and of a block of small collectives.
    fn limits(&self, policy: LinkPolicy) -> Result<Limits, JoinError> {
        let (topology, window) = (&*self.topology, self.windows.bytes);
        let packet = match policy.is_forwarded() {
            // No packet is forwarded in such a ring, so none has to fit a lane on the way.
            false => usize::MAX,
            true => {
                let lines = WindowLayout::smallest_lane(topology, window, policy.reroutes())? / LINE;
                entry_max(lines) - policy.reliability().trailer()
            }
        };
        Ok(Limits { packet, block: WindowLayout::block_max(topology, window) })
    }

    /// Returns the parameters of links.
    fn connect<'a>(&'a self, policy: LinkPolicy, fabric: &'a dyn Fabric, cards: Cards<'a>) -> Connect<'a> {
        let (topology, window) = (&*self.topology, self.windows.bytes);
        Connect { topology, host: topology.host_of(self.rank), window, policy, fabric, cards }
    }

    /// Returns the ranks and cores of this machine.
    fn processors(&self, cards: Cards) -> Processors {
        let thread_cores = self.settings.host.thread_cores.clone();
        if let Some(set) = thread_cores.as_ref().filter(|set| self.leads() && !cores::are_usable(set)) {
            log::warn!(
                "NTBRING_THREAD_CORES: this process may use none of the cores {set:?}; its threads stay where they are"
            );
        }
        let cores = cores::count(cards.here().map(|card| card.cores));
        Processors { pids: cards.here().map(|card| card.pid).collect(), cores, thread_cores }
    }
}

/// Returns the requests for notifications between a host and its neighbours, if there are channels to both.
fn notices(channels: &[Channel], shared: &Shared) -> Option<Arc<Notices>> {
    let [left, right] = channels else { return None };
    Some(Arc::new(Notices::new(shared.notices(), [left.notices(), right.notices()])))
}

/// Returns the size of the windows of a host whose adapters have these capabilities: that of the setting, or else the
/// default, rounded up to a size that the adapters can map. A default is limited to the largest window.
fn fit_window(
    mut caps: PortCaps,
    host: usize,
    set: Option<u64>,
    default: impl FnOnce() -> u64,
) -> Result<u64, JoinError> {
    let align = caps.window_size_align.max(1).next_multiple_of(OFFSET_UNIT);
    caps.window_size_align = align;
    let (most, wanted) = (caps.window_max / align * align, set.unwrap_or_else(default));
    match (caps.window_for(wanted), set) {
        (Some(window), _) => Ok(window),
        (None, None) if most > 0 => Ok(most),
        _ => {
            let what = format!("a window of {wanted} bytes is asked for (NTBRING_WINDOW), the largest has {most}");
            Err(JoinError::Unfit { host, what })
        }
    }
}
