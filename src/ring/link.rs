//! One link of a host, and the ends of the lanes in its windows.

use crate::failures::LinkSet;
use crate::forwarding::thread_split::thread_of;
use crate::layout::{Class, End, WindowLayout};
use crate::protocol::FORWARDER_DOORBELL;
use ntbring_memory::{CopyEngine, InWindow, OutWindow};
use ntbring_ntb::{Port, Side};
use ntbring_queue::{BoardReader, BoardWriter, Consumer, Producer, Reliability, LINE};
use std::sync::Arc;

/// Bytes of a credit: the head, and the retransmission request of a checked lane.
const CREDIT: usize = 16;

/// Returns true for lanes from rank to rank, which all small messages between two neighbours' ranks use: their pages
/// are mapped in advance. Many transit lanes are never used.
fn is_direct(from: End, to: End) -> bool {
    matches!((from, to), (End::Rank(_), End::Rank(_)))
}

/// One link of this process's host.
pub struct Link {
    pub(crate) side: Side,
    pub(crate) neighbour: usize,
    pub(crate) port: Arc<dyn Port>,
    pub(crate) incoming: InWindow,
    pub(crate) outgoing: OutWindow,
    /// Copy engine of the outgoing window, and the smallest copy for which it is used, bytes.
    pub(crate) engine: Option<(Arc<dyn CopyEngine>, usize)>,
    /// Layout of this host's incoming window.
    pub(crate) layout: WindowLayout,
    /// Layout of the neighbour's incoming window, which this host's outgoing window maps.
    pub(crate) peer_layout: WindowLayout,
    /// The window into which the neighbour's other neighbour writes, with its layout, for reading; None where that is
    /// not possible or of no use.
    pub(crate) view: Option<(WindowLayout, InWindow)>,
    /// Number of the neighbour's forwarder threads.
    pub(crate) threads: usize,
    /// Reliability level of its lanes.
    pub(crate) reliability: Reliability,
    /// Number of times that the link had gone down, and come up again, before this process joined.
    pub(crate) outages_before: u64,
}

impl Link {
    /// Returns the host at the other end.
    pub fn neighbour(&self) -> usize {
        self.neighbour
    }

    /// Returns the side of this host that the link is on.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Returns true if the link has gone down since this process joined.
    pub fn has_been_down(&self) -> bool {
        self.port.outages() != self.outages_before
    }

    /// Returns the outages that the neighbour has reported, in a ring of `hosts` hosts.
    pub(crate) fn reported_outages(&self, hosts: usize) -> LinkSet {
        LinkSet::read(&self.incoming.part(self.layout.outages_offset(), LINE), hosts)
    }

    /// Reports outages to the neighbour.
    pub(crate) fn write_outages(&self, links: LinkSet) {
        links.write(&self.outgoing.part(self.peer_layout.outages_offset(), LINE));
    }

    /// Returns the port of the link.
    pub fn port(&self) -> Arc<dyn Port> {
        self.port.clone()
    }

    /// Returns the number of the neighbour's doorbell that wakes the thread which forwards packets of `class` to side
    /// `to` there.
    pub fn bell(&self, to: Side, class: Class) -> usize {
        FORWARDER_DOORBELL + thread_of(self.threads, to, class)
    }

    /// Creates the sending end of the lane from `from` on this host to `to` on the neighbour. To be called once a lane,
    /// in one process.
    pub fn producer(&self, from: End, to: End, beyond: bool) -> Producer {
        let lane = self.peer_layout.lane(from, to, beyond);
        if is_direct(from, to) {
            self.outgoing.part(self.peer_layout.lane_offset(lane), self.peer_layout.lane_bytes()).populate();
        }
        self.producer_of(lane)
    }

    /// Creates the sending end of the lane for bulk between two such ends, if there is one. Its entries may be copied
    /// by the port's engine. To be called once a lane, in one process.
    pub fn bulk_producer(&self, from: End, to: End, beyond: bool) -> Option<Producer> {
        let producer = self.peer_layout.bulk_lane(from, to, beyond).map(|lane| self.producer_of(lane))?;
        Some(match &self.engine {
            Some((engine, min)) => producer.with_engine(engine.clone(), *min),
            None => producer,
        })
    }

    /// Creates the sending end of the control lane from this host's network manager to the neighbour's, if there is
    /// one. To be called once, in one process.
    pub fn control_out(&self) -> Option<Producer> {
        self.peer_layout.control().map(|lane| self.producer_of(lane))
    }

    fn producer_of(&self, lane: usize) -> Producer {
        let window = self.outgoing.part(self.peer_layout.lane_offset(lane), self.peer_layout.lane_bytes());
        let producer = Producer::new(window, self.incoming.part(self.layout.credit_offset(lane), CREDIT));
        let tail = self.outgoing.part(self.peer_layout.tail_offset(lane), 8);
        producer.checked(self.reliability, tail)
    }

    /// Creates the receiving end of the lane from `from` on the neighbour to `to` on this host. To be called once a
    /// lane, in one process.
    pub fn consumer(&self, from: End, to: End, beyond: bool) -> Consumer {
        let lane = self.layout.lane(from, to, beyond);
        if is_direct(from, to) {
            self.incoming.part(self.layout.lane_offset(lane), self.layout.lane_bytes()).populate();
        }
        self.consumer_of(lane)
    }

    /// Creates the receiving end of the lane for bulk between two such ends, if there is one. To be called once a lane,
    /// in one process.
    pub fn bulk_consumer(&self, from: End, to: End, beyond: bool) -> Option<Consumer> {
        self.layout.bulk_lane(from, to, beyond).map(|lane| self.consumer_of(lane))
    }

    /// Creates the receiving end of the control lane from the neighbour's network manager, if there is one. To be
    /// called once, in one process.
    pub fn control_in(&self) -> Option<Consumer> {
        self.layout.control().map(|lane| self.consumer_of(lane))
    }

    fn consumer_of(&self, lane: usize) -> Consumer {
        let window = self.incoming.part(self.layout.lane_offset(lane), self.layout.lane_bytes());
        let consumer = Consumer::new(window, self.outgoing.part(self.peer_layout.credit_offset(lane), CREDIT));
        let tail = self.incoming.part(self.layout.tail_offset(lane), 8);
        consumer.checked(self.reliability, tail)
    }

    /// Returns the number of boards of each pair of ranks, both ways: none if links are checked, since the checks do
    /// not cover boards.
    pub fn boards(&self) -> usize {
        match self.reliability {
            Reliability::Off => self.layout.boards().min(self.peer_layout.boards()),
            _ => 0,
        }
    }

    /// Creates the writing end of a board from rank `from` of this host to rank `to` of the neighbour. To be called
    /// once a board, in one process.
    pub fn board_writer(&self, from: usize, to: usize, board: usize) -> BoardWriter {
        let layout = &self.peer_layout;
        let window = self.outgoing.part(layout.board_offset(from, to, board), layout.board().bytes());
        window.populate();
        BoardWriter::new(window, layout.board())
    }

    /// Creates the reading end of a board from rank `from` of the neighbour to rank `to` of this host. To be called
    /// once a board, in one process.
    pub fn board_reader(&self, from: usize, to: usize, board: usize) -> BoardReader {
        let layout = &self.layout;
        let window = self.incoming.part(layout.board_offset(from, to, board), layout.board().bytes());
        window.populate();
        BoardReader::new(window, layout.board())
    }

    /// Returns the view of the board on which the host behind the neighbour writes to the neighbour, if there is one.
    /// Both have one rank.
    pub fn board_view(&self, board: usize) -> Option<BoardReader> {
        let (layout, window) = self.view.as_ref()?;
        let window = window.part(layout.board_offset(0, 0, board), layout.board().bytes());
        window.populate();
        Some(BoardReader::new(window, layout.board()))
    }
}
