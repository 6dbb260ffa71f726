//! All traffic to one peer.

use super::allowance::Allowance;
use super::line::{FlowQueue, Opening, Waiting};
use ntbring_ring::relay::Route;

/// All traffic to one rank.
#[derive(Default)]
pub struct Flow {
    pub line: FlowQueue,
    /// The queue for bulk data, if there is a bulk lane.
    pub bulk: Option<Box<FlowQueue>>,
    pub route: Option<Route>,
    pub distance: usize,
    /// True if hosts between relay what is sent.
    pub relays: bool,
    /// Number of packets that are still to be relayed before a lane past the hosts between is opened; None if there is
    /// no such lane, or it is in use.
    pub detours: Option<u32>,
    pub allowance: Allowance,
    pub listed: bool,
    pub msgs: u64,
    pub bytes: u64,
    /// Messages and bytes that were relayed before a lane past the hosts between was opened.
    pub relayed: (u64, u64),
}

impl Flow {
    /// Returns the messages and bytes that were sent directly, and those that were relayed.
    pub fn traffic(&self) -> [(u64, u64); 2] {
        let relayed = if self.relays { (self.msgs, self.bytes) } else { self.relayed };
        [(self.msgs - relayed.0, self.bytes - relayed.1), relayed]
    }

    /// Leads the flow through another lane from now on, to its rank directly. Nothing may wait in it.
    pub fn redirect(&mut self, outbox: usize) {
        [_, self.relayed] = self.traffic();
        self.relays = false;
        self.line = FlowQueue::new(outbox);
        (self.bulk, self.route, self.detours) = (None, None, None);
    }

    /// Creates the flow to a rank to which there is no lane yet.
    pub fn nowhere(outbox: usize, allowance: Allowance) -> Flow {
        Flow { line: FlowQueue::new(outbox), allowance, ..Flow::default() }
    }

    /// Drops the queue and detaches the flow from its lanes. Returns the number of messages that waited for credit.
    pub fn lose(&mut self, outbox: usize) -> usize {
        [_, self.relayed] = self.traffic();
        self.relays = false;
        self.line = FlowQueue::new(outbox);
        (self.bulk, self.route, self.detours) = (None, None, None);
        self.allowance.forget()
    }

    /// True if a message may be sent before anything that is queued here.
    #[inline]
    pub fn is_clear(&self) -> bool {
        self.line.waiting.is_empty()
    }

    /// True if nothing is left to be sent.
    pub fn is_idle(&self) -> bool {
        self.line.is_idle() && self.bulk.as_ref().is_none_or(|bulk| bulk.is_idle())
    }

    /// Returns the queue of a packet. A rendezvous payload need not keep its order among the messages of the flow.
    pub fn line_of(&mut self, waiting: &Waiting) -> &mut FlowQueue {
        match (waiting, &mut self.bulk) {
            (Waiting::Pieces { opening: Opening::Feed(_), .. }, Some(bulk)) => bulk,
            _ => &mut self.line,
        }
    }

    /// Returns the packets and bytes that wait for room, and the messages and bytes that wait for credit.
    pub fn left(&self) -> ((u64, u64), (u64, u64)) {
        let (line, bulk) = (self.line.left(), self.bulk.as_ref().map_or((0, 0), |bulk| bulk.left()));
        ((line.0 + bulk.0, line.1 + bulk.1), (self.allowance.len() as u64, self.allowance.bytes()))
    }

    /// Describes what is left to be sent, for the diagnosis of a hang.
    pub fn describe(&self) -> String {
        let lines = || std::iter::once(&self.line).chain(self.bulk.as_deref());
        let (streams, rest) =
            lines().map(FlowQueue::streaming).fold((0, 0), |sum, line| (sum.0 + line.0, sum.1 + line.1));
        format!(
            "{} messages wait, {streams} in transit with {rest} bytes left, {} held for credit of the receiver",
            lines().map(|line| line.waiting.len()).sum::<usize>(),
            self.allowance.len(),
        )
    }
}
