//! The buffers and the progress of an alltoall.

use ntbring_memory::{ForeignBytes, ForeignRoom};

/// The blocks of a rank: one for each member of the group, in the order of the hosts.
#[derive(Clone, Copy, Debug)]
pub struct Blocks {
    /// Outgoing blocks. The rank's own block is ignored.
    pub from: ForeignBytes<'static>,
    /// Room for incoming blocks.
    pub to: ForeignRoom<'static>,
}

/// Progress of an alltoall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlltoallProgress {
    /// The alltoall is in progress.
    Pending,
    /// All incoming blocks have been copied, and the other members no longer need the outgoing blocks.
    Done,
    /// This group cannot use the algorithm: all members learn that, and must use messages, now and later.
    ByMessages,
}
