//! Ends of lanes, and classes of packets.

/// Size of the smallest lane, bytes.
pub const LANE_MIN: usize = 4096;

/// One end of a lane: a rank, by its index among the ranks of its host, or the host's forwarder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A rank of the host.
    Rank(usize),
    /// The host's forwarder.
    Forwarder,
}

/// Priority class of a packet at the hosts that it passes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Packets that a rank may be waiting for: small messages, and all control packets of the protocol. They have
    /// priority.
    Urgent,
    /// Chunks of large payloads.
    Bulk,
}

impl Class {
    /// Both classes, in the order in which they are served.
    pub const BOTH: [Class; 2] = [Class::Urgent, Class::Bulk];
}
