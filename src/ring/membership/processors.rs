//! The ranks and cores of the machine that a process is on.

use ntbring_host::{cores, sessions};

/// The ranks and cores of the machine that a process is on.
pub(crate) struct Processors {
    /// The processes of the ranks that share this process's machine and process namespace.
    pub pids: Vec<u32>,
    /// Number of cores that these ranks may use.
    pub cores: usize,
    /// The cores that a setting names for threads of this process.
    pub thread_cores: Option<cores::Cores>,
}

impl Processors {
    /// Returns the cores for threads of this process: those of the setting, or those on which they disturb no rank, if
    /// they differ from those of the process.
    pub fn beside_ranks(&self) -> Option<cores::Cores> {
        self.thread_cores.clone().or_else(|| cores::beside(&self.pids))
    }

    /// Returns true if the machine is oversubscribed: more ranks of the job are on it than it gives cores to.
    pub fn is_oversubscribed(&self) -> bool {
        self.pids.len() > self.cores
    }

    /// Returns a remark for the user on a cause of slowness, if there is one. It concerns all ranks of the machine, so
    /// it is enough if one rank calls this.
    pub fn remark(&self) -> Option<String> {
        let sessions = if self.is_oversubscribed() { sessions::apart(&self.pids) } else { 1 };
        (sessions > 1).then(|| {
            let (ranks, cores) = (self.pids.len(), self.cores);
            format!(
                "{ranks} ranks on {cores} cores are in {sessions} sessions, among which the kernel shares cores out \
                 first: ranks that wait cannot yield their cores to all others. See \"Slow with more ranks than \
                 cores\" in docs/troubleshooting.md"
            )
        })
    }
}
