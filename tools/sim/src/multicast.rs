//! Messages to a list of hosts, as in SPAX (ETRI 1995) for control messages: the source divides the list into the hosts
//! that are nearer on either side of the ring, and sends one packet to each side. A host on the list keeps a copy and
//! passes the rest of the list on, so that each link carries the message at most once.
//!
//! An intermediate host forwards the packet first and then copies it to its own rank, which takes it like any other
//! packet. In the last host the packet goes directly to the rank.

use super::agenda::{time_for, Time};
use super::machine::{Event, Load, Own, Packet, Simulation};
use super::net::Net;
use super::traffic::{Multicast, MULTICAST_LIST};
use ntbring_ntb::Side;
use std::collections::VecDeque;

/// Divides a list into the hosts that are reached by the left and by the right, each nearest first.
pub(super) fn divided(net: &Net, src: usize, to: &[usize]) -> [Vec<usize>; 2] {
    Side::BOTH.map(|side| {
        let mut part: Vec<usize> = to.iter().copied().filter(|dst| net.side(src, *dst) == side).collect();
        part.sort_by_key(|dst| net.distance(src, *dst));
        part
    })
}

impl Simulation<'_> {
    /// Sends a message to several hosts.
    pub fn spread(&mut self, call: &Multicast) {
        let (src, bytes) = (call.src, call.bytes + MULTICAST_LIST);
        for (side, part) in Side::BOTH.into_iter().zip(divided(&self.net, src, &call.to)) {
            let Some(last) = part.last().copied() else { continue };
            let to: VecDeque<_> = part.into_iter().map(|dst| (dst, self.issue(src, dst, call.bytes, None))).collect();
            let track = self.way_out(src, last, side, src, 0, false);
            let since = self.agenda.now();
            let (hops, urgent, acknowledges, lost, load) = (0, false, false, false, Load::Multicast(to));
            let packet = Packet { src, dst: last, side, hops, bytes, urgent, acknowledges, lost, since, load };
            self.put_source(src, track, Own::Packet(packet));
        }
    }

    /// Delivers a packet that a host has forwarded until `end`: if it is for this host, too, the forwarder copies it to
    /// the host's rank. Returns the time at which the forwarder has finished.
    pub fn leave_here(&mut self, host: usize, number: usize, end: Time) -> Time {
        let packet = &mut self.packets[number];
        let Load::Multicast(to) = &mut packet.load else { return end };
        let Some((_, message)) = to.front().copied().filter(|(dst, _)| *dst == host) else { return end };
        to.pop_front();
        let bytes = packet.bytes - MULTICAST_LIST;
        let end = end + time_for(bytes, self.plan.host.copy);
        // The rank takes it from its lane and copies it once more.
        let costs = self.costs[0];
        let taken = end + costs.packet + costs.receive + time_for(bytes, self.plan.host.copy);
        self.agenda.at(taken, Event::Come(message, bytes));
        end
    }

    /// Delivers a packet at the last host of its list.
    pub fn end_here(&mut self, to: VecDeque<(usize, usize)>, bytes: u64) {
        debug_assert_eq!(to.len(), 1);
        to.into_iter().for_each(|(_, message)| self.come(message, bytes - MULTICAST_LIST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that every host is in one part, and that no link is crossed by both.
    #[test]
    fn the_parts_of_a_list_go_round_the_ring_once() {
        for hosts in 2..=16 {
            let net = Net::new(format!("ring:{hosts}").parse().unwrap(), false).unwrap();
            for src in 0..hosts {
                let all: Vec<usize> = (0..hosts).filter(|host| *host != src).collect();
                let parts = divided(&net, src, &all);
                let mut found = parts.concat();
                found.sort_unstable();
                assert_eq!(found, all);
                let furthest = |part: &Vec<usize>| part.last().map_or(0, |dst| net.distance(src, *dst));
                assert_eq!(parts.iter().map(furthest).sum::<usize>(), hosts - 1);
                assert!(parts.iter().all(|part| part.is_sorted_by_key(|dst| net.distance(src, *dst))));
            }
        }
    }
}
