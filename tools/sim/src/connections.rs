//! Connections that retransmit: the state of their ends.

use ntbring_endpoint::reliable::receiver::Receiver;
use ntbring_endpoint::reliable::sender::Sender;
use ntbring_ntb::Side;
use ntbring_queue::{Consumer, Producer};
use std::collections::{BTreeMap, VecDeque};

/// One end of a connection.
pub(super) struct End {
    pub producer: Producer,
    pub sender: Sender,
    pub consumer: Consumer,
    pub receiver: Receiver,
    pub side: Option<Side>,
    /// Messages that are not completely in the lane.
    pub pending: VecDeque<usize>,
    /// True if a datagram of the connection is in the queue of the host. There is at most one, so that it is up to date
    /// when it leaves.
    pub queued: bool,
    /// True if a check of the connection is scheduled.
    pub tended: bool,
}

/// All ends of connections, by host and peer.
#[derive(Default)]
pub(super) struct Ends {
    pub all: BTreeMap<(usize, usize), End>,
}

impl Ends {
    /// Returns the number of entries that were retransmitted.
    pub fn resent(&self) -> u64 {
        self.all.values().map(|end| end.sender.resent).sum()
    }
}
