//! Discovery of the hosts and processes of running jobs, for tools.

use crate::file_tag::FileKind;
use crate::mailbox::Mailbox;
use crate::open_files::look_through;
use crate::stats_page::StatsPage;
use crate::FileTag;
use ntbring_memory::Region;
use std::collections::BTreeMap;
use std::fs;
use std::io;

/// The shared memory of a host of a running job.
pub struct RunningHostMemory {
    /// The host's position in its job.
    pub is: FileTag,
    /// The line after the header that the host's processes use ([`MemoryFile::notes`]).
    pub notes: Region,
}

impl RunningHostMemory {
    /// Returns the memory of all hosts of this user's jobs on this machine. A job with several VCIs (virtual
    /// communication interfaces of MPICH) lists each of its hosts more than once.
    pub fn all() -> io::Result<Vec<RunningHostMemory>> {
        let mut found = BTreeMap::new();
        look_through(|address, kind, memory| {
            if let (FileKind::Host(is), Ok(notes)) = (kind, memory.notes()) {
                found.insert((is, address.inode), RunningHostMemory { is, notes });
            }
        })?;
        Ok(found.into_values().collect())
    }
}

/// One VCI of a process of a running job.
pub struct RunningProcess {
    /// Id of the process of the job's rank 0, which identifies the job.
    pub job: u32,
    /// Id of the process; None if it has ended, while other processes still hold its memory open.
    pub pid: Option<u32>,
    /// The stats page that the process writes.
    pub stats_page: StatsPage,
}

impl RunningProcess {
    /// Returns all processes of this user's jobs on this machine.
    pub fn all() -> io::Result<Vec<RunningProcess>> {
        let mut found = BTreeMap::<_, RunningProcess>::new();
        look_through(|address, kind, memory| {
            if let (FileKind::Process { job }, Ok(stats_page)) = (kind, StatsPage::of(memory)) {
                let owner = Mailbox::owner(memory).is_ok_and(|owner| is_same(address.pid, owner));
                let process = found.entry((job, address.inode));
                let process = process.or_insert_with(|| RunningProcess { job, pid: None, stats_page });
                process.pid = owner.then_some(address.pid).or(process.pid);
            }
        })?;
        Ok(found.into_values().collect())
    }
}

/// Returns true if process `pid` has the id `own` in its own namespace of process ids.
fn is_same(pid: u32, own: u32) -> bool {
    pid == own || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        ids.and_then(|ids| ids.split_whitespace().last()).and_then(|id| id.parse().ok()) == Some(own)
    }
}
