//! The lanes from which a rank receives, and peers that come and go.

use super::inbound::Inbound;
use super::inbox::{Inbox, VACANT};
use super::record::Recorded;
use crate::bell::Bell;
use crate::error::EndpointError;
use ntbring_queue::Consumer;
use ntbring_ring::layout::{Class, End};
use ntbring_ring::{rank_doorbell, DirectLane, Membership};
use smallvec::SmallVec;
use std::sync::Arc;

impl Inbound {
    /// Attaches the lanes of a rank. `connections` are the lanes from ranks of other hosts that a reliable connection
    /// fills, if those over links are not used.
    pub fn new(members: &Arc<Membership>, connections: Option<Vec<(u32, Consumer)>>) -> Inbound {
        let topology = members.topology();
        let (host, me) = (members.host(), End::Rank(topology.local_of(members.rank())));
        let mut boxes = Vec::new();
        let links = members.links().filter(|_| connections.is_none());
        for (rank, lane) in connections.into_iter().flatten() {
            boxes.push(Inbox::new(lane, Bell::Reliable, Some(rank)));
        }
        for link in links.into_iter().flatten() {
            let next = link.neighbour();
            for (local, &rank) in topology.ranks_of(next).iter().enumerate() {
                if topology.direction(next, host) == link.side().opposite() {
                    let bell = Bell::Port(link.side(), link.port(), rank_doorbell(local));
                    let lane = link.consumer(End::Rank(local), me, false);
                    boxes.push(Inbox::new(lane, bell, Some(rank)));
                }
            }
            if members.is_served() {
                let bell = |class| Bell::Port(link.side(), link.port(), link.bell(link.side().opposite(), class));
                let lane = link.consumer(End::Forwarder, me, false);
                boxes.push(Inbox::new(lane, bell(Class::Urgent), None));
                let bulk = link.bulk_consumer(End::Forwarder, me, false);
                boxes.extend(bulk.map(|lane| Inbox { bulk: true, ..Inbox::new(lane, bell(Class::Bulk), None) }));
            }
        }
        for (local, &rank) in topology.ranks_of(host).iter().enumerate() {
            let bell = Bell::Local(members.clone(), rank_doorbell(local));
            boxes.push(Inbox::new(members.local_consumer(local), bell, Some(rank)));
        }
        let streams = (0..topology.size()).map(|_| None).collect();
        Inbound {
            boxes,
            next: 0,
            burst: 0,
            burst_over: false,
            size: topology.size() as u32,
            me: members.rank(),
            streams,
            rooms: 0,
            members: members.clone(),
            lost: SmallVec::new(),
            msgs: 0,
            bytes: 0,
            recorded: Recorded::default(),
            head_updates: 0,
            doorbells: 0,
        }
    }

    /// Makes room for peers up to this number.
    pub fn admit(&mut self, peer: usize) {
        if self.streams.len() <= peer {
            self.streams.resize_with(peer + 1, || None);
        }
    }

    /// Forgets the open streams of a rank that is lost, and drops its later packets.
    pub fn lose(&mut self, rank: u32) {
        self.close_streams(rank);
        self.lost.push(rank);
    }

    /// Adds the lane that a peer writes.
    pub fn connect(&mut self, peer: u32, lane: Consumer, bell: Bell) {
        self.clear();
        self.boxes.push(Inbox::new(lane, bell, Some(peer)));
    }

    /// Opens the lane past the hosts between, into which a rank puts everything from now on.
    pub fn open_direct(&mut self, rank: u32) -> Result<(), EndpointError> {
        if self.lost.contains(&rank) {
            return Ok(());
        }
        if self.boxes.iter().any(|inbox| inbox.from == Some(rank)) {
            return Err(EndpointError::SecondLane { src: rank });
        }
        let DirectLane { end, bell } = self.members.direct_consumer(rank)?;
        // A rank that has ended has sent what is in the lane, and needs no doorbell.
        let bell = bell.map_or(Bell::Reliable, |(bells, doorbell)| Bell::Foreign(bells, doorbell));
        self.boxes.push(Inbox::new(end, bell, Some(rank)));
        Ok(())
    }

    /// Removes the lanes of peers that are gone. Entries of a lane that are still held are released by its index, so
    /// such lanes stay at their index.
    fn clear(&mut self) {
        let is_free = |inbox: &Inbox| inbox.lane.held() == 0;
        let is_over = |inbox: &Inbox| inbox.shut & VACANT != 0 && is_free(inbox);
        while let Some(i) = self.boxes.iter().position(is_over) {
            if i + 1 < self.boxes.len() && !self.boxes.last().is_some_and(is_free) {
                break;
            }
            self.boxes.swap_remove(i);
        }
        if self.next >= self.boxes.len() {
            self.next = 0;
        }
    }

    /// Takes the lane of a peer away: no more entries arrive from it.
    pub fn disconnect(&mut self, peer: u32) {
        self.close_streams(peer);
        for inbox in self.boxes.iter_mut().filter(|inbox| inbox.from == Some(peer)) {
            inbox.shut |= VACANT;
            inbox.bell = Bell::Reliable;
        }
        self.clear();
    }
}
