//! A process that has joined the ring: its host, its links, its peers.

use super::adapters::Adapters;
use super::direct_lanes::DirectLanes;
use super::peers::Peers;
use super::processors::Processors;
use super::shared::Shared;
use crate::external_peer::{ExternalAddress, Reach};
use crate::failures::Dead;
use crate::link::Link;
use crate::liveness::Monitor;
use crate::policy::LinkPolicy;
use crate::rerouting::routing_table::RoutingTable;
use crate::topology::Topology;
use ntbring_host::cores::Cores;
use ntbring_host::{KernelCopy, Mailbox};
use ntbring_ntb::fabric::Backend;
use ntbring_ntb::fault::Injector;
use ntbring_ntb::{LinkState, Side, Vector};
use ntbring_queue::{Consumer, Producer};
use ntbring_rma::Registry;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A process in the ring.
pub struct Membership {
    pub(crate) topology: Arc<Topology>,
    pub(crate) rank: u32,
    pub(crate) policy: LinkPolicy,
    pub(crate) limits: Limits,
    /// Number of forwarder threads of this process's host.
    pub(crate) threads: usize,
    pub(crate) adapters: Adapters,
    pub(crate) shared: Shared,
    pub(crate) peers: Peers,
    pub(crate) processors: Processors,
    /// The monitor, in the first rank of a host that needs one, until it is started.
    pub(crate) monitor: Option<Monitor>,
    pub(crate) mailbox: Option<Mailbox>,
    /// Another handle of the mailbox, until the gateway takes it; None in processes without a gateway.
    pub(crate) gateway_mailbox: Mutex<Option<Mailbox>>,
    /// The lanes from ranks of hosts that are not neighbours; None where packets go round the ring.
    pub(crate) direct_lanes: Option<DirectLanes>,
    /// Directory of shared memory.
    pub(crate) shm_dir: PathBuf,
}

/// Limits that follow from the layouts of all windows.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// The most bytes of a packet that fits into all lanes that it may have to pass.
    pub packet: usize,
    /// The most bytes of a block that fits all boards.
    pub block: usize,
}

impl Drop for Membership {
    fn drop(&mut self) {
        // The first rank of a host is the last one that needs the host's monitor.
        let leads = self.topology.local_of(self.rank) == 0;
        if let Some(table) = self.peers.table.as_ref().filter(|_| leads) {
            table.leave();
        }
    }
}

impl Membership {
    /// Returns the placement of ranks on hosts.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// Returns this process's rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Returns this process's host.
    pub fn host(&self) -> usize {
        self.topology.host_of(self.rank)
    }

    /// Returns the properties that all links of the ring have in common.
    pub fn policy(&self) -> LinkPolicy {
        self.policy
    }

    /// Returns the most bytes that a packet may have to fit into all lanes that it may have to pass.
    pub fn packet_max(&self) -> usize {
        self.limits.packet
    }

    /// Returns the most bytes of a block that fits all boards; the same at all members.
    pub fn block_max(&self) -> usize {
        self.limits.block
    }

    /// Returns true if hosts have forwarders, which serve segments for ranks that cannot map them.
    pub fn is_served(&self) -> bool {
        self.policy.is_forwarded()
    }

    /// Returns the number of threads that forward at this process's host, if it has forwarders.
    pub fn forwarder_threads(&self) -> usize {
        self.threads
    }

    /// Returns the monitor of this process's host, if it needs one and this is its first rank. It must be started in a
    /// process or thread of its own.
    pub fn take_monitor(&mut self) -> Option<Monitor> {
        self.monitor.take()
    }

    /// Returns this process's mailbox. Panics if it was taken before.
    pub fn take_mailbox(&mut self) -> Mailbox {
        self.mailbox.take().expect("the mailbox is taken once")
    }

    /// Returns a handle of this process's mailbox for the gateway; None if it has none, or has it already.
    pub(crate) fn take_gateway_mailbox(&self) -> Option<Mailbox> {
        self.gateway_mailbox.lock().unwrap_or_else(|e| e.into_inner()).take()
    }

    /// Returns the directory of shared memory.
    pub(crate) fn shm_dir(&self) -> &Path {
        &self.shm_dir
    }
}

/// Ports and links.
impl Membership {
    /// Returns the left and the right link; None in a ring of one host.
    pub fn links(&self) -> Option<[&Link; 2]> {
        self.adapters.links.as_ref().map(|[left, right]| [left, right])
    }

    /// Returns the backend that opened the ports.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.adapters.backend
    }

    /// Returns a vector of this process's host.
    pub fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        self.adapters.vector(doorbell)
    }

    /// Rings a doorbell of this process's own host.
    pub fn ring(&self, doorbell: usize) {
        self.adapters.ring(doorbell);
    }

    /// Sets the link state that the emulated port on a side reports from now on, as `ntbring link` does. Only packets
    /// that are sent through ports with faults are lost then.
    pub fn set_link(&self, side: Side, state: LinkState) {
        self.adapters.set_link(side, state);
    }

    /// Returns the faults of this process's links; None without any.
    pub fn injector(&self) -> Option<&Arc<Injector>> {
        self.adapters.injector.as_ref()
    }

    /// Writes the buffered part of the record of accesses.
    pub fn flush_record(&self) {
        self.adapters.flush_record();
    }
}

/// Memory of the host.
impl Membership {
    /// Returns the sending end of the lane to a rank of the same host, by its number there.
    pub fn local_producer(&self, to: usize) -> Producer {
        self.shared.producer(self.topology.local_of(self.rank), to)
    }

    /// Returns the receiving end of the lane from a rank of the same host.
    pub fn local_consumer(&self, from: usize) -> Consumer {
        self.shared.consumer(from, self.topology.local_of(self.rank))
    }

    /// Returns the registry in which ranks of this host announce segments to its forwarder.
    pub fn registry(&self) -> Registry {
        self.shared.registry(self.topology.ranks_of(self.host()).len())
    }

    /// Returns the routes of packets of this process's host. They are not published in rings that do not reroute.
    pub fn routes(&self) -> RoutingTable {
        self.shared.routes()
    }
}

/// Other ranks.
impl Membership {
    /// Returns the process id of a rank.
    pub fn pid(&self, rank: u32) -> u32 {
        self.peers.pids[rank as usize]
    }

    /// Returns the addresses of all ranks for processes of other jobs.
    pub fn external_peer_addresses(&self) -> &[ExternalAddress] {
        &self.peers.external_peers
    }

    /// Returns this process's surroundings, from which the ways to processes of other jobs follow.
    pub fn reach(&self) -> Reach<'_> {
        let ranks = self.external_peer_addresses();
        let first = self.topology.ranks_of(self.host())[0];
        let gateway = self.policy.is_forwarded().then(|| &ranks[first as usize]);
        Reach { me: &ranks[self.rank as usize], ranks, gateway, backend: self.backend().as_ref() }
    }

    /// Returns the handle for kernel copies from and to a rank's memory, if there are any.
    pub fn kernel_copy(&self, rank: u32) -> Option<KernelCopy> {
        *self.peers.kernel_copy.get(rank as usize)?
    }

    /// Returns true if this process may map memory of a rank: on its own host, or on a neighbour whose link grants
    /// that shortcut.
    pub fn is_mappable(&self, rank: u32) -> bool {
        let (topology, host) = (&self.topology, self.host());
        (rank as usize) < topology.size()
            && match topology.distance(host, topology.host_of(rank)) {
                0 => true,
                1 => self.policy.shortcuts().segments,
                _ => false,
            }
    }

    /// Returns true if this process and a rank may map buffers that both use: on one host, or on any two hosts of a ring
    /// whose links all grant the shortcut `segments`, because all hosts are on one machine then.
    pub fn can_share(&self, rank: u32) -> bool {
        let (topology, host) = (&self.topology, self.host());
        (rank as usize) < topology.size()
            && (topology.distance(host, topology.host_of(rank)) == 0 || self.policy.shortcuts().segments)
    }

    /// Returns the ranks of the job whose processes have ended, or whose hosts have been silent for too long.
    pub fn dead(&self) -> Vec<Dead> {
        self.peers.dead(&self.topology, self.host())
    }

    /// Returns the hosts that send no keep-alives although their ranks are not known to have died, with the time since
    /// the last keep-alive.
    pub fn silent(&self) -> Vec<(usize, Duration)> {
        self.peers.table.as_ref().map_or_else(Vec::new, |table| table.silent())
    }

    /// Returns the number of keep-alives that the monitor of this process's host has sent; None if the host needs no
    /// monitor.
    pub fn beats(&self) -> Option<u32> {
        Some(self.peers.table.as_ref()?.beats(self.host()))
    }

    /// Returns the silence of a host after which its ranks count as lost.
    pub fn silence_limit(&self) -> Duration {
        self.peers.silence
    }

    /// Returns the cores for threads of this process: those of the setting, or those on which they disturb no rank, if
    /// they differ from those of the process.
    pub fn cores_beside_ranks(&self) -> Option<Cores> {
        self.processors.beside_ranks()
    }

    /// Returns true if this machine is oversubscribed: more ranks of the job are on it than it gives cores to.
    pub fn is_oversubscribed(&self) -> bool {
        self.processors.is_oversubscribed()
    }

    /// Returns a remark for the user on a cause of slowness, if there is one. It concerns all ranks of the machine, so
    /// it is enough if one rank calls this.
    pub fn remark(&self) -> Option<String> {
        self.processors.remark()
    }
}
