//! A process that has joined the ring: its host, its links, its peers.

use super::guest::GuestAddress;
use super::link::Link;
use super::liveness::{Monitor, Table, WARN_AFTER};
use super::near::is_near;
use super::plan::LocalPlan;
use super::ways::Ways;
use super::{Dead, Topology};
use ntbring_host::{cores, sessions};
use ntbring_host::{HostMemory, Mailbox, Reach, Watch};
use ntbring_memory::{InWindow, OutWindow};
use ntbring_ntb::fabric::{Backend, Fabric};
use ntbring_ntb::fault::Injector;
use ntbring_ntb::trace::Record;
use ntbring_ntb::{LinkState, Side, Vector};
use ntbring_queue::{Consumer, Producer};
use ntbring_rma::Registry;
use std::sync::Arc;
use std::time::Duration;

/// A process in the ring.
pub struct Membership {
    pub(super) topology: Arc<Topology>,
    pub(super) rank: u32,
    pub(super) backend: Arc<dyn Backend>,
    pub(super) fabric: Box<dyn Fabric>,
    pub(super) memory: HostMemory,
    pub(super) local_plan: LocalPlan,
    /// Left and right; none in a ring of one host.
    pub(super) links: Option<[Link; 2]>,
    pub(super) packet_max: usize,
    pub(super) block_max: usize,
    /// The other ranks that this process can watch: those of its host, or all.
    pub(super) watch: Watch,
    /// The table of the host's monitor; None if all ranks are watched.
    pub(super) table: Option<Table>,
    /// The monitor, in the first rank of a host that needs one, until it is started.
    pub(super) monitor: Option<Monitor>,
    /// Silence of a host after which its ranks count as lost.
    pub(super) silence: Duration,
    pub(super) pids: Vec<u32>,
    /// The processes of the ranks that share this process's machine and process namespace.
    pub(super) near_pids: Vec<u32>,
    /// The way around the windows to each rank that has one.
    pub(super) reach: Vec<Option<Reach>>,
    pub(super) cores: usize,
    pub(super) thread_cores: Option<cores::Cores>,
    /// True if hosts have forwarders.
    pub(super) served: bool,
    /// The threads that forward at this process's host.
    pub(super) threads: usize,
    pub(super) record: Option<Record>,
    /// None without faults.
    pub(super) injector: Option<Arc<Injector>>,
    /// The addresses of all ranks for processes of other jobs.
    pub(super) guests: Vec<GuestAddress>,
    pub(super) mailbox: Option<Mailbox>,
}

impl Drop for Membership {
    fn drop(&mut self) {
        // The first rank of a host is the last to need its monitor.
        if let Some(table) = self.table.as_ref().filter(|_| self.topology.local_of(self.rank) == 0) {
            table.leave();
        }
    }
}

impl Membership {
    /// The most bytes that a packet may have to fit into all lanes that it may have to pass.
    pub fn packet_max(&self) -> usize {
        self.packet_max
    }

    /// The most bytes of a block that fits all boards; the same at all members.
    pub fn block_max(&self) -> usize {
        self.block_max
    }

    /// The placement of ranks on hosts.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// The cores for threads of this process: those of the setting, or those on which they disturb no rank, if they differ
    /// from those of the process.
    pub fn cores_beside_ranks(&self) -> Option<cores::Cores> {
        self.thread_cores.clone().or_else(|| cores::beside(&self.near_pids))
    }

    /// The monitor of this process's host, if it needs one and this is its first rank. It must be started in a process or
    /// thread of its own.
    pub fn take_monitor(&mut self) -> Option<Monitor> {
        self.monitor.take()
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

    /// The addresses of all ranks for processes of other jobs.
    pub fn guest_addresses(&self) -> &[GuestAddress] {
        &self.guests
    }

    /// The backend that opened the ports.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
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
            None => self.fabric.vector(doorbell),
        }
    }

    /// Rings a doorbell of this process's own host.
    pub fn ring(&self, doorbell: usize) {
        self.fabric.ring(doorbell);
    }

    /// The sending end of the lane to a rank of the same host, by its number there.
    pub fn local_producer(&self, to: usize) -> Producer {
        let (me, plan, region) = (self.topology.local_of(self.rank), &self.local_plan, self.memory.bytes());
        let lane = OutWindow::new(region.part(plan.lane_offset(me, to), plan.lane_bytes()));
        lane.populate();
        Producer::new(lane, InWindow::new(region.part(plan.credit_offset(me, to), 8)))
    }

    /// The receiving end of the lane from a rank of the same host.
    pub fn local_consumer(&self, from: usize) -> Consumer {
        let (me, plan, region) = (self.topology.local_of(self.rank), &self.local_plan, self.memory.bytes());
        let lane = InWindow::new(region.part(plan.lane_offset(from, me), plan.lane_bytes()));
        lane.populate();
        Consumer::new(lane, OutWindow::new(region.part(plan.credit_offset(from, me), 8)))
    }

    /// The ranks of the job whose processes have ended, or whose hosts have been silent for too long.
    pub fn dead(&self) -> Vec<Dead> {
        let dead =
            |rank: u32, silent| Dead { rank, host: self.topology.host_of(rank), pid: self.pids[rank as usize], silent };
        let mut all: Vec<Dead> = self.watch.dead().into_iter().map(|rank| dead(rank, None)).collect();
        if let Some(table) = &self.table {
            // The watch is faster for this process's own host, to which the table adds nothing.
            let elsewhere = |rank: &u32| self.topology.host_of(*rank) != self.host();
            let ended: Vec<u32> = table.ended().into_iter().filter(elsewhere).collect();
            let lost = (0..self.topology.hosts()).filter(|&host| table.silence(host) >= self.silence);
            let lost = lost.flat_map(|host| self.topology.ranks_of(host)).filter(|rank| !ended.contains(rank));
            all.extend(lost.map(|&rank| dead(rank, Some(self.silence))));
            all.extend(ended.iter().map(|&rank| dead(rank, None)));
        }
        all
    }

    /// The hosts that send no keep-alives although their ranks live as far as is known, with the time since the last.
    pub fn silent(&self) -> Vec<(usize, Duration)> {
        let Some(table) = &self.table else { return Vec::new() };
        let silences = (0..self.topology.hosts()).map(|host| (host, table.silence(host)));
        silences.filter(|(_, silence)| *silence >= WARN_AFTER).collect()
    }

    /// The number of keep-alives that the monitor of this process's host has sent; None if the host needs no monitor.
    pub fn beats(&self) -> Option<u32> {
        Some(self.table.as_ref()?.beats(self.host()))
    }

    /// The silence of a host after which its ranks count as lost.
    pub fn silence_limit(&self) -> Duration {
        self.silence
    }

    /// Returns true if this process may map memory of a rank: on its own host, or on a neighbour behind a
    /// coherent port.
    pub fn is_near(&self, rank: u32) -> bool {
        (rank as usize) < self.topology.size() && is_near(self.host(), self.links.as_ref(), self.topology.host_of(rank))
    }

    /// Returns true if hosts have forwarders, which serve segments for ranks that are not near.
    pub fn is_served(&self) -> bool {
        self.served
    }

    /// The threads that forward at this process's host, if it has forwarders.
    pub fn transfer_threads(&self) -> usize {
        self.threads
    }

    /// The registry in which ranks of this host announce segments to its forwarder.
    pub fn registry(&self) -> Registry {
        let ranks = self.topology.ranks_of(self.host()).len();
        let region = self.memory.bytes().part(self.local_plan.registry_offset(), Registry::bytes(ranks));
        Registry::new(region, ranks)
    }

    /// Which way packets of this process's host go. Says nothing in jobs whose links are trusted.
    pub fn ways(&self) -> Ways {
        Ways::new(self.memory.notes())
    }

    /// Sets the link state that the emulated port on a side reports from now on, as `ntbring link` does. Only packets that
    /// are sent through ports with faults are lost then.
    pub fn set_link(&self, side: Side, state: LinkState) {
        self.fabric.set_link(side, state);
    }

    /// The process of a rank.
    pub fn pid(&self, rank: u32) -> u32 {
        self.pids[rank as usize]
    }

    /// The handle for kernel copies from and to a rank's memory, if there are any.
    pub fn reach(&self, rank: u32) -> Option<Reach> {
        *self.reach.get(rank as usize)?
    }

    /// Returns true if this machine is oversubscribed: more ranks of the job are on it than it gives cores to.
    pub fn is_crowded(&self) -> bool {
        self.near_pids.len() > self.cores
    }

    /// A remark for people on a cause of slowness. Looks at all processes: one rank may ask for all.
    pub fn remark(&self) -> Option<String> {
        let sessions = if self.is_crowded() { sessions::apart(&self.near_pids) } else { 1 };
        (sessions > 1).then(|| {
            let (ranks, cores) = (self.near_pids.len(), self.cores);
            format!(
                "{ranks} ranks on {cores} cores are in {sessions} sessions, among which the kernel shares cores out first: those \
                 that wait cannot make room for others. \"Slow with more ranks than cores\" in docs/troubleshooting.md tells more"
            )
        })
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
