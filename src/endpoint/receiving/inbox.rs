//! One incoming lane, and the streams of chunks in it.

use crate::arrival::Target;
use crate::bell::Bell;
use ntbring_queue::Consumer;

/// Fruitless looks at a lane before it counts as cold and is looked at only by thorough polls.
pub const HEAT: u16 = u16::MAX;

/// Reason for not taking from a lane: a chunked message has begun whose cookie is not known yet.
pub const BEGINNING: u8 = 1;
/// Reason for not taking from a lane: its link has gone down.
pub const CUT: u8 = 2;
/// Reason for not taking from a lane: its writer is gone; the lane is freed once none of its entries is held.
pub const VACANT: u8 = 4;

/// An incoming lane.
pub struct Inbox {
    pub lane: Consumer,
    pub bell: Bell,
    /// The rank that writes the lane; None if it is the neighbour's forwarder.
    pub from: Option<u32>,
    /// True for a lane whose entries do not have priority over those of other lanes.
    pub bulk: bool,
    /// Reasons for not taking from the lane, as bits.
    pub shut: u8,
    /// Fruitless looks left before the lane counts as cold.
    pub heat: u16,
}

impl Inbox {
    pub fn new(lane: Consumer, bell: Bell, from: Option<u32>) -> Inbox {
        Inbox { lane, bell, from, bulk: false, shut: 0, heat: HEAT }
    }

    /// Names the writer of the lane.
    pub fn describe(&self) -> String {
        match (self.from, &self.bell) {
            (Some(rank), _) => format!("rank {rank}"),
            (None, Bell::Port(side, ..)) => format!("the forwarder on the {side} link"),
            (None, _) => "this host".into(),
        }
    }
}

/// A stream of chunks that is open.
#[derive(Clone, Copy)]
pub struct Incoming {
    pub cookie: usize,
    pub left: u64,
    pub target: Target,
}
