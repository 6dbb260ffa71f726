//! Pools of threads: their state, and that of the inputs that they serve.

use super::agenda::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Index of the pool of forwarder threads; `RANKS` is that of ranks.
pub(super) const POOL: usize = 0;
pub(super) const RANKS: usize = 1;

/// A source of work: a lane from a neighbour, or the queue of items that this host has to send by a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Input {
    pub track: usize,
    pub own: bool,
}

/// State of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The input has no packet.
    Empty,
    /// The input waits for a thread.
    Ready,
    /// A thread works on it.
    Served,
    /// The input waits for room.
    Blocked,
}

/// A pool of threads.
pub(super) struct Centre {
    pub threads: usize,
    /// Idle threads, with the time at which they became idle; the last one is taken first.
    pub idle: Vec<Time>,
    /// Inputs that wait for a thread: class, time of the wait's start, number, input.
    pub ready: BinaryHeap<Reverse<(bool, Time, u64, Input)>>,
    /// Number of threads that are about to look for work.
    pub coming: usize,
    /// Time of the copy or reduction that the rank's next step is, and that waits for its thread.
    pub compute: Option<Time>,
}

impl Centre {
    pub fn new(threads: usize) -> Centre {
        Centre { threads, idle: vec![0; threads], ready: BinaryHeap::new(), coming: 0, compute: None }
    }

    pub fn busy(&self) -> usize {
        self.threads - self.idle.len()
    }
}

/// The job of a thread.
pub(super) struct Job {
    pub host: usize,
    pub centre: usize,
    pub input: Input,
    pub outcome: Outcome,
    /// Hosts whose memory it uses, and the rates in bytes per second.
    pub memory: [Option<(usize, u64)>; 2],
}

#[derive(Clone, Copy)]
pub(super) enum Outcome {
    /// A packet in transit is forwarded.
    Forwarded,
    /// A packet is at its destination.
    Delivered(usize),
    /// A packet is dropped.
    Dropped(usize),
    /// A packet of this host has left: with the last chunk of this message, or as a datagram of the connection to this
    /// peer.
    Sent { message: Option<usize>, peer: Option<usize> },
}

/// Hosts whose memory is used, and the rates in bytes per second.
pub(super) type Memory = [Option<(usize, u64)>; 2];

/// A job that a thread has begun: its end, its outcome, and the memory that it uses.
pub(super) type Begun = (Time, Outcome, Memory);
