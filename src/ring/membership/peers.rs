//! The processes of a job, as one of them knows them.

use crate::external_peer::ExternalAddress;
use crate::failures::Dead;
use crate::liveness::table::Table;
use crate::topology::Topology;
use ntbring_host::{KernelCopy, Watch};
use std::time::Duration;

/// The processes of a job, as one of them knows them; all lists are in rank order.
pub(crate) struct Peers {
    pub pids: Vec<u32>,
    /// The addresses of all ranks for processes of other jobs.
    pub external_peers: Vec<ExternalAddress>,
    /// The handles for kernel copies; None for ranks without such copies.
    pub kernel_copy: Vec<Option<KernelCopy>>,
    /// The other ranks that this process can watch: those of its host, or all.
    pub watch: Watch,
    /// The table of the host's monitor; None if all ranks are watched.
    pub table: Option<Table>,
    /// Silence of a host after which its ranks count as lost.
    pub silence: Duration,
}

impl Peers {
    /// Returns the ranks whose processes have ended, or whose hosts have been silent for too long. `host` is the one of
    /// this process.
    pub fn dead(&self, topology: &Topology, host: usize) -> Vec<Dead> {
        let dead =
            |rank: u32, silent| Dead { rank, host: topology.host_of(rank), pid: self.pids[rank as usize], silent };
        let mut all: Vec<Dead> = self.watch.dead().into_iter().map(|rank| dead(rank, None)).collect();
        if let Some(table) = &self.table {
            // The watch is faster for this process's own host, and the table has no further information on it.
            let elsewhere = |rank: &u32| topology.host_of(*rank) != host;
            let ended: Vec<u32> = table.ended().into_iter().filter(elsewhere).collect();
            let lost = (0..topology.hosts()).filter(|&host| table.silence(host) >= self.silence);
            let lost = lost.flat_map(|host| topology.ranks_of(host)).filter(|rank| !ended.contains(rank));
            all.extend(lost.map(|&rank| dead(rank, Some(self.silence))));
            all.extend(ended.iter().map(|&rank| dead(rank, None)));
        }
        all
    }
}
