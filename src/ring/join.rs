//! A process's way into the ring, and what it then holds of it.

use super::handshake::{Greeting, Handshake, HandshakeError, Outcome};
use super::plan::{End, LocalPlan, TooSmall, WindowPlan};
use super::topology::TopologyError;
use super::{Topology, PROTOCOL_VERSION};
use crate::ntb::emu::{check_space, EmuHost, EmuPort, HostAddress, MemoryLayout, Watch};
use crate::ntb::trace::{Record, Trace};
use crate::ntb::weak::Weak;
use crate::ntb::{InWindow, LinkState, NtbError, OutWindow, Port, Side, Vector, SCRATCHPADS};
use crate::queue::{entry_max, Consumer, Producer, LINE};
use crate::settings::Settings;
use bytes::{Buf, BufMut};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What MPICH's shared-memory module may come to use for each of several ranks of a host, bytes:
/// 64 cells of 16 KiB and what goes with them.
const MPICH_SHM_PER_RANK: u64 = 2 << 20;

/// Where MPICH has its own shared memory.
const MPICH_SHM_DIR: &str = "/dev/shm";

/// Why a process cannot join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The job does not make a ring.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The windows are too small.
    #[error(transparent)]
    TooSmall(#[from] TooSmall),
    /// The device.
    #[error(transparent)]
    Ntb(#[from] NtbError),
    /// The neighbours disagree.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// Nobody answered.
    #[error(
        "host {host}: no answer from {whom} within {seconds} s (NTBRING_CONNECT_TIMEOUT); it may hang or have died"
    )]
    Timeout {
        /// This host.
        host: usize,
        /// Who should have answered.
        whom: String,
        /// The time that was given.
        seconds: u64,
    },
    /// A rank has died meanwhile.
    #[error("rank {rank} on host {host} (process {pid}) has died while joining the ring")]
    Died {
        /// The rank.
        rank: u32,
        /// Its host.
        host: usize,
        /// Its process.
        pid: u32,
    },
    /// An address that is not one.
    #[error("the address of rank {rank} cannot be used: {what}")]
    Address {
        /// The rank.
        rank: u32,
        /// What is wrong.
        what: String,
    },
    /// The host's first rank has failed, with this text.
    #[error("{0}")]
    Leader(String),
    /// The record of accesses cannot be written.
    #[error("NTBRING_TRACE: cannot create {path}: {cause}")]
    Trace {
        /// The file.
        path: String,
        /// What the system said.
        cause: std::io::Error,
    },
}

/// What every rank tells all others before they can meet: 48 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// Protocol version.
    pub version: u32,
    /// The rank's process.
    pub pid: u32,
    /// The host's memory, if the rank is the first of its host.
    pub memory: Option<HostAddress>,
}

impl Card {
    /// Bytes that a card takes.
    pub const LEN: usize = 48;
    const MAGIC: u64 = u64::from_le_bytes(*b"ntbcard\x01");

    /// As bytes.
    pub fn bytes(&self) -> [u8; Card::LEN] {
        let m = self.memory.unwrap_or(HostAddress { pid: 0, fd: 0, inode: 0, token: 0 });
        let mut bytes = [0; Card::LEN];
        let mut to = &mut bytes[..];
        to.put_u64_le(Self::MAGIC);
        to.put_u32_le(self.version);
        to.put_u32_le(self.pid);
        to.put_u64_le(self.memory.is_some().into());
        to.put_u32_le(m.pid);
        to.put_u32_le(m.fd);
        to.put_u64_le(m.inode);
        to.put_u64_le(m.token);
        bytes
    }

    /// From bytes.
    pub fn parse(mut bytes: &[u8]) -> Result<Card, String> {
        if bytes.len() < Card::LEN {
            return Err(format!("{} bytes, {} are needed", bytes.len(), Card::LEN));
        }
        if bytes.get_u64_le() != Self::MAGIC {
            return Err("it is not an address of ntbring".into());
        }
        let (version, pid) = (bytes.get_u32_le(), bytes.get_u32_le());
        let has_memory = bytes.get_u64_le() == 1;
        let (memory_pid, fd) = (bytes.get_u32_le(), bytes.get_u32_le());
        let address = HostAddress { pid: memory_pid, fd, inode: bytes.get_u64_le(), token: bytes.get_u64_le() };
        Ok(Card { version, pid, memory: has_memory.then_some(address) })
    }
}

/// One link of this process's host.
pub struct Link {
    neighbour: usize,
    port: Arc<dyn Port>,
    incoming: InWindow,
    outgoing: OutWindow,
    /// Of our incoming window.
    plan: WindowPlan,
    /// Of the neighbour's incoming window, which our outgoing window shows.
    peer_plan: WindowPlan,
}

impl Link {
    /// The host at the other end.
    pub fn neighbour(&self) -> usize {
        self.neighbour
    }

    /// The side of this host that the link is on.
    pub fn side(&self) -> Side {
        self.port.side()
    }

    /// The port.
    pub fn port(&self) -> Arc<dyn Port> {
        self.port.clone()
    }

    /// The sending end of the lane from `from` on this host to `to` on the neighbour. To be
    /// called once a lane, in one process.
    pub fn producer(&self, from: End, to: End, beyond: bool) -> Producer {
        let lane = self.peer_plan.lane(from, to, beyond);
        let window = self.outgoing.part(self.peer_plan.lane_offset(lane), self.peer_plan.lane_bytes());
        Producer::new(window, self.incoming.part(self.plan.credit_offset(lane), 8))
    }

    /// The receiving end of the lane from `from` on the neighbour to `to` on this host. To be
    /// called once a lane, in one process.
    pub fn consumer(&self, from: End, to: End, beyond: bool) -> Consumer {
        let lane = self.plan.lane(from, to, beyond);
        let window = self.incoming.part(self.plan.lane_offset(lane), self.plan.lane_bytes());
        Consumer::new(window, self.outgoing.part(self.peer_plan.credit_offset(lane), 8))
    }
}

/// A process that is about to join: it owns what it must own, and knows nobody yet.
pub struct Candidate {
    topology: Arc<Topology>,
    rank: u32,
    settings: Settings,
    layout: MemoryLayout,
    local_plan: LocalPlan,
    memory: Option<EmuHost>,
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
    record: Option<Record>,
}

impl Candidate {
    /// Checks that the job makes a ring whose windows fit, and creates the host's memory if this
    /// is the first rank of its host.
    pub fn new(topology: Topology, rank: u32, settings: Settings) -> Result<Candidate, JoinError> {
        let host = topology.host_of(rank);
        let local_plan = LocalPlan::new(topology.ranks_of(host).len(), settings.local_lane);
        let window = match topology.hosts() {
            1 => 0,
            _ => settings.window.unwrap_or_else(|| WindowPlan::good_window(&topology)),
        };
        if topology.hosts() > 1 {
            WindowPlan::smallest_lane(&topology, window)?;
        }
        let layout = MemoryLayout { window, local: local_plan.total() };
        let memory = match topology.local_of(rank) {
            0 => Some(EmuHost::create(&settings.shm_dir, layout)?),
            _ => None,
        };
        Ok(Candidate { topology: Arc::new(topology), rank, settings, layout, local_plan, memory })
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
        Card { version: PROTOCOL_VERSION.into(), pid: std::process::id(), memory }
    }

    /// Joins, given everybody's card in rank order. Waits for the neighbours, but not for ever.
    pub fn join(self, cards: &[Card]) -> Result<Membership, JoinError> {
        let Candidate { topology, rank, settings, layout, local_plan, memory } = self;
        let host = topology.host_of(rank);
        let leader = topology.ranks_of(host)[0];
        if let Some(other) = (0..cards.len()).find(|&r| cards[r].version != u32::from(PROTOCOL_VERSION)) {
            let what = format!("it speaks protocol version {}, this rank {PROTOCOL_VERSION}", cards[other].version);
            return Err(JoinError::Address { rank: other as u32, what });
        }
        let address = |host: usize| {
            let rank = topology.ranks_of(host)[0];
            let what = || "the first rank of its host gave no memory".to_string();
            cards[rank as usize].memory.ok_or_else(|| JoinError::Address { rank, what: what() })
        };
        let pids: Vec<u32> = cards.iter().map(|c| c.pid).collect();
        let others = (0..topology.size() as u32).filter(|&r| r != rank);
        let watch = Watch::new(others.map(|r| (r, pids[r as usize]))).map_err(|(r, _)| died(&topology, &pids, r))?;
        let memory = match memory {
            Some(memory) => memory,
            None => EmuHost::join(address(host)?, layout)?,
        };
        let record = open_record(&settings, rank)?;
        let mut ports: Vec<Arc<dyn Port>> = Vec::new();
        if topology.hosts() > 1 {
            for side in Side::BOTH {
                let port = memory.port(side, &address(topology.neighbour(host, side))?)?;
                ports.push(decorate(port, &settings, record.as_ref(), rank));
            }
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
        let packet_max = match topology.hosts() {
            // Nothing is forwarded.
            0..4 => usize::MAX,
            _ => entry_max(WindowPlan::smallest_lane(&topology, layout.window)? / LINE),
        };
        let mut links = Vec::new();
        for (port, offset) in ports.into_iter().zip(offsets) {
            let side = port.side();
            let neighbour = topology.neighbour(host, side);
            links.push(Link {
                neighbour,
                incoming: port.incoming(),
                outgoing: port.outgoing(offset, layout.window)?,
                plan: WindowPlan::new(&topology, host, side, layout.window)?,
                peer_plan: WindowPlan::new(&topology, neighbour, side.opposite(), layout.window)?,
                port,
            });
        }
        Ok(Membership {
            topology,
            rank,
            memory,
            local_plan,
            links: links.try_into().ok(),
            packet_max,
            watch,
            pids,
            record,
        })
    }
}

fn died(topology: &Topology, pids: &[u32], rank: u32) -> JoinError {
    JoinError::Died { rank, host: topology.host_of(rank), pid: pids[rank as usize] }
}

fn open_record(settings: &Settings, rank: u32) -> Result<Option<Record>, JoinError> {
    let Some(file) = &settings.trace else { return Ok(None) };
    let mut path = file.clone().into_os_string();
    path.push(format!(".{rank}"));
    let record = Record::create(path.as_ref());
    record.map(Some).map_err(|cause| JoinError::Trace { path: path.to_string_lossy().into_owned(), cause })
}

fn decorate(port: EmuPort, settings: &Settings, record: Option<&Record>, rank: u32) -> Arc<dyn Port> {
    match (settings.weak.map(|seed| seed ^ u64::from(rank) << 8), record.cloned()) {
        (None, None) => Arc::new(port),
        (Some(seed), None) => Arc::new(Weak::new(port, seed)),
        (None, Some(record)) => Arc::new(Trace::new(port, record)),
        (Some(seed), Some(record)) => Arc::new(Trace::new(Weak::new(port, seed), record)),
    }
}

/// The start of a host's local part: how its first rank tells the others what it has learned.
struct Control {
    block: InWindow,
    out: OutWindow,
}

impl Control {
    const STATE: usize = 0; // 0 unknown, 1 joined, 2 failed
    const OFFSETS: [usize; 2] = [8, 16];
    const TEXT_LEN: usize = 24;
    const TEXT: usize = 32;
    const TEXT_MAX: usize = 1024;

    fn publish(&self, result: &Result<Vec<u64>, JoinError>) {
        match result {
            Ok(offsets) => {
                for (place, &offset) in Self::OFFSETS.into_iter().zip(offsets) {
                    self.out.store(place, offset);
                }
                self.out.store(Self::STATE, 1);
            }
            Err(error) => {
                let text = error.to_string();
                let len = text.len().min(Self::TEXT_MAX);
                self.out.write_bytes(Self::TEXT, &text.as_bytes()[..len]);
                self.out.store(Self::TEXT_LEN, len as u64);
                self.out.store(Self::STATE, 2);
            }
        }
    }

    fn state(&self) -> Option<Result<Vec<u64>, JoinError>> {
        match self.block.load(Self::STATE) {
            1 => Some(Ok(Self::OFFSETS.map(|place| self.block.load(place)).to_vec())),
            2 => {
                let mut text = vec![0; (self.block.load(Self::TEXT_LEN) as usize).min(Self::TEXT_MAX)];
                self.block.read(Self::TEXT, &mut text);
                Some(Err(JoinError::Leader(String::from_utf8_lossy(&text).into_owned())))
            }
            _ => None,
        }
    }
}

/// Waiting for others, with everything that bounds it.
struct Meeting<'a> {
    topology: &'a Topology,
    host: usize,
    window: u64,
    settings: &'a Settings,
    watch: &'a Watch,
    pids: &'a [u32],
}

impl Meeting<'_> {
    /// Calls `look` until it finds something, somebody dies, or the time is over.
    fn wait<T>(
        &self,
        whom: impl Fn() -> String,
        mut look: impl FnMut() -> Result<Option<T>, JoinError>,
    ) -> Result<T, JoinError> {
        let start = Instant::now();
        for round in 0u32.. {
            if let Some(found) = look()? {
                return Ok(found);
            }
            if round < 50 {
                std::thread::yield_now();
                continue;
            }
            std::thread::sleep(Duration::from_micros(200));
            if round % 64 == 0 {
                if let Some(&rank) = self.watch.dead().first() {
                    return Err(died(self.topology, self.pids, rank));
                }
                if start.elapsed() > self.settings.connect_timeout {
                    break;
                }
            }
        }
        let seconds = self.settings.connect_timeout.as_secs();
        Err(JoinError::Timeout { host: self.host, whom: whom(), seconds })
    }

    /// Shakes hands over both ports; returns where the neighbours' windows for us lie.
    fn neighbours(&self, ports: &[Arc<dyn Port>]) -> Result<Vec<u64>, JoinError> {
        let mut shakes: Vec<_> = ports.iter().map(|port| self.handshake(port.as_ref())).collect();
        let mut greetings: Vec<Option<Greeting>> = vec![None; ports.len()];
        let missing = std::cell::Cell::new(0);
        // Refusals pass round the ring; the reason may be found on the other link.
        let mut refused = vec![None; ports.len()];
        let result = self.wait(
            || {
                ports.get(missing.get()).map_or(String::new(), |p| {
                    format!("host {} on the {} link", self.topology.neighbour(self.host, p.side()), p.side())
                })
            },
            || {
                for (i, port) in ports.iter().enumerate() {
                    if greetings[i].is_some() || refused[i].is_some() || port.link() != LinkState::Up {
                        continue;
                    }
                    match advance(&mut shakes[i], port.as_ref()) {
                        Err(JoinError::Handshake(refusal @ HandshakeError::Refused { .. })) => {
                            refused[i] = Some(refusal)
                        }
                        other => greetings[i] = other?,
                    }
                }
                let open = |i: &usize| greetings[*i].is_none() && refused[*i].is_none();
                let first_open = (0..ports.len()).find(open);
                missing.set(first_open.unwrap_or(0));
                Ok(first_open.is_none().then_some(()))
            },
        );
        let result = match (result, refused.into_iter().flatten().next()) {
            (Ok(()) | Err(JoinError::Timeout { .. }), Some(refusal)) => Err(refusal.into()),
            (result, _) => result,
        };
        if let Err(error) = result {
            // The other neighbour is not to wait for a host that will not come.
            for (shake, port) in shakes.iter_mut().zip(ports) {
                for (register, value) in shake.refuse() {
                    port.peer_scratchpad(register, value);
                }
            }
            return Err(error);
        }
        let greetings: Vec<Greeting> = greetings.into_iter().flatten().collect();
        for (port, g) in ports.iter().zip(&greetings) {
            log::debug!(
                "host {}: {} neighbour is host {} with {} ranks, window of {} bytes at {}",
                self.host,
                port.side(),
                g.host,
                g.ranks,
                g.window,
                g.offset
            );
        }
        Ok(greetings.iter().map(|g| g.offset).collect())
    }

    fn handshake(&self, port: &dyn Port) -> Handshake {
        let mine = Greeting {
            version: PROTOCOL_VERSION,
            host: self.host as u16,
            hosts: self.topology.hosts() as u16,
            ranks: self.topology.ranks_of(self.host).len() as u16,
            window: self.window,
            offset: port.incoming_offset(),
            chunk: self.settings.chunk as u32,
        };
        Handshake::new(mine, self.topology.neighbour(self.host, port.side()) as u16)
    }

    fn leader(&self, control: &Control, leader: u32) -> Result<Vec<u64>, JoinError> {
        self.wait(|| format!("rank {leader}, the first rank of this host"), || control.state().transpose())
    }
}

fn advance(shake: &mut Handshake, port: &dyn Port) -> Result<Option<Greeting>, JoinError> {
    let mut own = [0; SCRATCHPADS];
    // In the opposite order to that in which they are written: what the phase vouches for is there.
    for register in (0..SCRATCHPADS).rev() {
        own[register] = port.scratchpad(register);
    }
    let step = shake.step(&own);
    for (register, value) in step.write {
        port.peer_scratchpad(register, value);
    }
    match step.outcome {
        Outcome::Waiting => Ok(None),
        Outcome::Done(greeting) => Ok(Some(greeting)),
        Outcome::Failed(error) => Err(error.into()),
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

    /// Where the memory of this process's host is.
    pub fn memory_address(&self) -> HostAddress {
        self.memory.address()
    }

    /// A vector of this process's host.
    pub fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        self.memory.vector(doorbell)
    }

    /// Rings a doorbell of this process's own host.
    pub fn ring(&self, doorbell: usize) {
        self.memory.ring(doorbell);
    }

    /// The sending end of the lane to a rank of the same host, by its number there.
    pub fn local_producer(&self, to: usize) -> Producer {
        let (me, plan) = (self.topology.local_of(self.rank), &self.local_plan);
        let region = self.memory.local();
        let lane = OutWindow::new(region.part(plan.lane_offset(me, to), plan.lane_bytes()));
        Producer::new(lane, InWindow::new(region.part(plan.credit_offset(me, to), 8)))
    }

    /// The receiving end of the lane from a rank of the same host.
    pub fn local_consumer(&self, from: usize) -> Consumer {
        let (me, plan) = (self.topology.local_of(self.rank), &self.local_plan);
        let region = self.memory.local();
        let lane = InWindow::new(region.part(plan.lane_offset(from, me), plan.lane_bytes()));
        Consumer::new(lane, OutWindow::new(region.part(plan.credit_offset(from, me), 8)))
    }

    /// The ranks of the job whose processes have ended, with their hosts and processes.
    pub fn dead(&self) -> Vec<(u32, usize, u32)> {
        let place = |rank| (rank, self.topology.host_of(rank), self.pids[rank as usize]);
        self.watch.dead().into_iter().map(place).collect()
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
