//! The word in a memory file's header that tells tools the kind of the file, and its job and host.

/// The position of a host in its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTag {
    /// Id of the process of the job's rank 0, which identifies the job.
    pub job: u32,
    /// The host's number in the ring.
    pub host: u8,
    /// Number of hosts in the ring.
    pub hosts: u8,
    /// True if the host's ports inject faults, so that its links can be taken down by command.
    pub faulty: bool,
    /// True once the host has completed the handshakes with its neighbours.
    pub joined: bool,
}

/// The kind of a memory file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// The windows and registers of an emulated host.
    Windows(FileTag),
    /// Memory that the processes of a host share.
    Host(FileTag),
    /// The mailbox of a process of a job.
    Process {
        /// Id of the process of the job's rank 0, which identifies the job.
        job: u32,
    },
}

/// Position of the kind's number in the word, bits.
const KIND: u32 = 56;
const WINDOWS: u64 = 1;
const HOST: u64 = 2;
const PROCESS: u64 = 3;

impl FileKind {
    /// Encodes the kind as a word.
    pub fn word(self) -> u64 {
        match self {
            FileKind::Windows(is) => is.word() | WINDOWS << KIND,
            FileKind::Host(is) => is.word() | HOST << KIND,
            FileKind::Process { job } => u64::from(job) | PROCESS << KIND,
        }
    }

    /// Decodes a word; None if it is not the encoding of a kind.
    pub fn parse(word: u64) -> Option<FileKind> {
        let is = FileTag::parse(word & !(0xff << KIND));
        match word >> KIND {
            WINDOWS => is.map(FileKind::Windows),
            HOST => is.map(FileKind::Host),
            PROCESS if word >> 32 == PROCESS << (KIND - 32) => Some(FileKind::Process { job: word as u32 }),
            _ => None,
        }
    }
}

impl FileTag {
    fn word(self) -> u64 {
        let flags = u8::from(self.faulty) | u8::from(self.joined) << 1;
        let [host, hosts, flags] = [self.host, self.hosts, flags].map(u64::from);
        u64::from(self.job) | host << 32 | hosts << 40 | flags << 48
    }

    fn parse(word: u64) -> Option<FileTag> {
        let [host, hosts, flags] = [32, 40, 48].map(|bits| (word >> bits) as u8);
        let valid = hosts > host && flags < 1 << 2;
        let [faulty, joined] = [0, 1].map(|bit| flags >> bit & 1 == 1);
        valid.then_some(FileTag { job: word as u32, host, hosts, faulty, joined })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_survive_their_word_and_nothing_else_is_one() {
        for (faulty, joined) in [(false, false), (false, true), (true, false), (true, true)] {
            let is = FileTag { job: 4_000_000_000, host: 15, hosts: 64, faulty, joined };
            for kind in [FileKind::Windows(is), FileKind::Host(is), FileKind::Process { job: 4_000_000_000 }] {
                assert_eq!(FileKind::parse(kind.word()), Some(kind));
            }
        }
        for word in [0, u64::MAX, WINDOWS << KIND, PROCESS << KIND | 1 << 40] {
            assert_eq!(FileKind::parse(word), None, "{word:#x}");
        }
    }
}
