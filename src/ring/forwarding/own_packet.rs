//! Packets that a forwarder sends by itself: replies to one-sided requests, and packets of tunnels.

use super::route::{Route, ROUTED};
use crate::gateway::TUNNEL;
use bytes::Bytes;
use ntbring_queue::Producer;
use ntbring_rma::{Answer, REPLY};
use std::collections::VecDeque;

/// Capacity from which on an empty queue of packets gives memory back.
const KEPT: usize = 64;

/// Gives back the memory of a queue that has become empty after many packets.
pub(super) fn trim(packets: &mut VecDeque<OwnPacket>) {
    if packets.is_empty() && packets.capacity() > KEPT {
        packets.shrink_to(KEPT);
    }
}

/// A packet that begins at a forwarder.
pub(super) enum OwnPacket {
    /// A reply, for a rank.
    Reply(Answer),
    /// A packet of a tunnel, for the forwarder of the destination's host.
    Tunnel(Route, Bytes),
}

impl OwnPacket {
    /// Returns the packet's route.
    pub fn route(&self) -> Route {
        match self {
            OwnPacket::Reply(answer) => Route { src: answer.from, dst: answer.to },
            OwnPacket::Tunnel(route, _) => *route,
        }
    }

    /// Returns true if the packet is for the forwarder of its destination's host.
    pub fn is_for_forwarder(&self) -> bool {
        matches!(self, OwnPacket::Tunnel(..))
    }

    /// Writes the packet into a lane; returns false if there is no room.
    pub fn put(&self, lane: &mut Producer) -> bool {
        let head;
        let (kind, parts): (u8, [&[u8]; 2]) = match self {
            OwnPacket::Reply(answer) => {
                let (reply, payload) = answer.parts();
                head = reply;
                (REPLY, [&head[..], payload])
            }
            OwnPacket::Tunnel(_, bytes) => (TUNNEL, [bytes, &[]]),
        };
        let len = Route::LEN + parts[0].len() + parts[1].len();
        let Some(mut slot) = lane.reserve(len) else { return false };
        slot.write_bytes(0, &self.route().bytes());
        slot.write_bytes(Route::LEN, parts[0]);
        slot.write_bytes(Route::LEN + parts[0].len(), parts[1]);
        slot.commit(ROUTED | kind, len, 0);
        true
    }
}
