//! One link of a host, and the ends of the lanes in its windows.

use super::plan::{End, WindowPlan};
use crate::ntb::{InWindow, OutWindow, Port, Side};
use crate::queue::{BoardReader, BoardWriter, Consumer, Producer};
use std::sync::Arc;

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
    /// Whether heads and tails are control writes of their own.
    pub(super) announced: bool,
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

    /// The port.
    pub fn port(&self) -> Arc<dyn Port> {
        self.port.clone()
    }

    /// The sending end of the lane from `from` on this host to `to` on the neighbour. To be
    /// called once a lane, in one process.
    pub fn producer(&self, from: End, to: End, beyond: bool) -> Producer {
        let lane = self.peer_plan.lane(from, to, beyond);
        let window = self.outgoing.part(self.peer_plan.lane_offset(lane), self.peer_plan.lane_bytes());
        let producer = Producer::new(window, self.incoming.part(self.plan.credit_offset(lane), 8));
        match self.announced {
            true => producer.announcing(self.outgoing.part(self.peer_plan.tail_offset(lane), 8)),
            false => producer,
        }
    }

    /// The receiving end of the lane from `from` on the neighbour to `to` on this host. To be
    /// called once a lane, in one process.
    pub fn consumer(&self, from: End, to: End, beyond: bool) -> Consumer {
        let lane = self.plan.lane(from, to, beyond);
        let window = self.incoming.part(self.plan.lane_offset(lane), self.plan.lane_bytes());
        let consumer = Consumer::new(window, self.outgoing.part(self.peer_plan.credit_offset(lane), 8));
        match self.announced {
            true => consumer.announced(self.incoming.part(self.plan.tail_offset(lane), 8)),
            false => consumer,
        }
    }

    /// Boards of each pair of ranks, both ways.
    pub fn boards(&self) -> usize {
        self.plan.boards().min(self.peer_plan.boards())
    }

    /// The writing end of a board from rank `from` of this host to rank `to` of the neighbour. To be
    /// called once a board, in one process.
    pub fn board_writer(&self, from: usize, to: usize, board: usize) -> BoardWriter {
        let plan = &self.peer_plan;
        BoardWriter::new(self.outgoing.part(plan.board_offset(from, to, board), plan.board_bytes()))
    }

    /// The reading end of a board from rank `from` of the neighbour to rank `to` of this host. To be
    /// called once a board, in one process.
    pub fn board_reader(&self, from: usize, to: usize, board: usize) -> BoardReader {
        let plan = &self.plan;
        BoardReader::new(self.incoming.part(plan.board_offset(from, to, board), plan.board_bytes()))
    }
}
