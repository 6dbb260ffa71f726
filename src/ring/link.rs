//! One link of a host, and the ends of the lanes in its windows.

use super::crew::thread_of;
use super::plan::{Class, End, WindowPlan};
use super::FORWARDER_DOORBELL;
use ntbring_memory::{InWindow, OutWindow};
use ntbring_ntb::{Port, Shortcuts, Side};
use ntbring_queue::{BoardReader, BoardWriter, Consumer, Producer, Reliability};
use std::sync::Arc;

/// Bytes of a credit: the head, and a checked lane's complaint.
const CREDIT: usize = 16;

/// Whether a lane is one that all small messages between two ranks go round: its pages are entered before. Many transit lanes
/// are never used.
fn is_direct(from: End, to: End) -> bool {
    matches!((from, to), (End::Rank(_), End::Rank(_)))
}

/// One link of this process's host.
pub struct Link {
    pub(super) neighbour: usize,
    pub(super) port: Arc<dyn Port>,
    pub(super) incoming: InWindow,
    pub(super) outgoing: OutWindow,
    /// Of our incoming window.
    pub(super) plan: WindowPlan,
    /// Of the neighbour's incoming window, which our outgoing window shows.
    pub(super) peer_plan: WindowPlan,
    /// The threads that forward at the neighbour.
    pub(super) threads: usize,
    /// How far its lanes trust it.
    pub(super) reliability: Reliability,
    /// The shortcuts to the neighbour that may be used.
    pub(super) shortcuts: Shortcuts,
    /// Whether the outgoing window is memory behind this machine's caches.
    pub(super) near: bool,
    /// How often it had gone down before this process joined, and come up again.
    pub(super) outages_before: u64,
}

impl Link {
    /// The host at the other end.
    pub fn neighbour(&self) -> usize {
        self.neighbour
    }

    /// The side of this host that the link is on.
    pub fn side(&self) -> Side {
        self.port.side()
    }

    /// How far its lanes trust it.
    pub fn reliability(&self) -> Reliability {
        self.reliability
    }

    /// Whether its lanes do not trust it.
    pub fn is_checked(&self) -> bool {
        self.reliability != Reliability::Off
    }

    /// The shortcuts to the neighbour that may be used; none where links are not trusted, since only lanes are checked.
    pub fn shortcuts(&self) -> Shortcuts {
        self.shortcuts
    }

    /// Whether the outgoing window is memory behind this machine's caches, and trusted.
    pub fn is_coherent(&self) -> bool {
        self.near && self.reliability == Reliability::Off
    }

    /// Whether it has gone down since this process joined.
    pub fn has_been_down(&self) -> bool {
        self.port.outages() != self.outages_before
    }

    /// The port.
    pub fn port(&self) -> Arc<dyn Port> {
        self.port.clone()
    }

    /// The neighbour's doorbell for whoever forwards there what goes to a side, of a class.
    pub fn bell(&self, to: Side, class: Class) -> usize {
        FORWARDER_DOORBELL + thread_of(self.threads, to, class)
    }

    /// The sending end of the lane from `from` on this host to `to` on the neighbour. To be
    /// called once a lane, in one process.
    pub fn producer(&self, from: End, to: End, beyond: bool) -> Producer {
        let lane = self.peer_plan.lane(from, to, beyond);
        if is_direct(from, to) {
            self.outgoing.part(self.peer_plan.lane_offset(lane), self.peer_plan.lane_bytes()).populate();
        }
        self.producer_of(lane)
    }

    /// The sending end of the lane for bulk between two such ends, if there is one. To be called once a lane, in one
    /// process.
    pub fn bulk_producer(&self, from: End, to: End, beyond: bool) -> Option<Producer> {
        self.peer_plan.bulk_lane(from, to, beyond).map(|lane| self.producer_of(lane))
    }

    /// The sending end of the lane for what this host's network manager says to the neighbour's, if there is one. To be
    /// called once, in one process.
    pub fn orders_out(&self) -> Option<Producer> {
        self.peer_plan.orders().map(|lane| self.producer_of(lane))
    }

    fn producer_of(&self, lane: usize) -> Producer {
        let window = self.outgoing.part(self.peer_plan.lane_offset(lane), self.peer_plan.lane_bytes());
        let producer = Producer::new(window, self.incoming.part(self.plan.credit_offset(lane), CREDIT));
        let tail = self.outgoing.part(self.peer_plan.tail_offset(lane), 8);
        producer.checked(self.reliability, tail)
    }

    /// The receiving end of the lane from `from` on the neighbour to `to` on this host. To be
    /// called once a lane, in one process.
    pub fn consumer(&self, from: End, to: End, beyond: bool) -> Consumer {
        let lane = self.plan.lane(from, to, beyond);
        if is_direct(from, to) {
            self.incoming.part(self.plan.lane_offset(lane), self.plan.lane_bytes()).populate();
        }
        self.consumer_of(lane)
    }

    /// The receiving end of the lane for bulk between two such ends, if there is one. To be called once a lane, in one
    /// process.
    pub fn bulk_consumer(&self, from: End, to: End, beyond: bool) -> Option<Consumer> {
        self.plan.bulk_lane(from, to, beyond).map(|lane| self.consumer_of(lane))
    }

    /// The receiving end of the lane for what the neighbour's network manager says, if there is one. To be called once,
    /// in one process.
    pub fn orders_in(&self) -> Option<Consumer> {
        self.plan.orders().map(|lane| self.consumer_of(lane))
    }

    fn consumer_of(&self, lane: usize) -> Consumer {
        let window = self.incoming.part(self.plan.lane_offset(lane), self.plan.lane_bytes());
        let consumer = Consumer::new(window, self.outgoing.part(self.peer_plan.credit_offset(lane), CREDIT));
        let tail = self.incoming.part(self.plan.tail_offset(lane), 8);
        consumer.checked(self.reliability, tail)
    }

    /// Boards of each pair of ranks, both ways: none where links are not trusted, since nothing checks boards.
    pub fn boards(&self) -> usize {
        match self.reliability {
            Reliability::Off => self.plan.boards().min(self.peer_plan.boards()),
            _ => 0,
        }
    }

    /// The writing end of a board from rank `from` of this host to rank `to` of the neighbour. To be
    /// called once a board, in one process.
    pub fn board_writer(&self, from: usize, to: usize, board: usize) -> BoardWriter {
        let plan = &self.peer_plan;
        let window = self.outgoing.part(plan.board_offset(from, to, board), plan.board().bytes());
        window.populate();
        BoardWriter::new(window, plan.board())
    }

    /// The reading end of a board from rank `from` of the neighbour to rank `to` of this host. To be
    /// called once a board, in one process.
    pub fn board_reader(&self, from: usize, to: usize, board: usize) -> BoardReader {
        let plan = &self.plan;
        let window = self.incoming.part(plan.board_offset(from, to, board), plan.board().bytes());
        window.populate();
        BoardReader::new(window, plan.board())
    }
}
