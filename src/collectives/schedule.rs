//! Schedules: the steps of one rank, in their order.

use crate::allgather::Allgather;
use crate::alltoall::Alltoall;
use crate::broadcast::Broadcast;
use crate::parts::Parts;
use crate::reduce::Reduce;

/// A buffer of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// This rank's contribution. If the collective is in place, it is the output.
    Input,
    /// This rank's result; the vector of a broadcast.
    Output,
    /// Memory for the time of the collective, of [`Schedule::scratch`] elements.
    Scratch,
}

/// A position in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The buffer.
    pub buffer: Buffer,
    /// Number of elements before the position.
    pub offset: u64,
}

impl Place {
    pub(crate) fn new(buffer: Buffer, offset: u64) -> Place {
        Place { buffer, offset }
    }
}

/// A step that the caller carries out before it asks for the next one. `count` is a number of elements; a request is a
/// number below [`Schedule::requests`] that is free until a send or receive begins with it, and again once that has
/// been waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Begins to send elements to a rank.
    Send {
        /// Receiver.
        to: u32,
        /// First element.
        from: Place,
        /// Number of elements.
        count: u64,
        /// Number of the request.
        request: u32,
    },
    /// Begins to receive elements from a rank.
    Receive {
        /// Sender.
        from: u32,
        /// Place of the first element.
        to: Place,
        /// Number of elements.
        count: u64,
        /// Number of the request.
        request: u32,
    },
    /// Waits until the elements of a send may be overwritten.
    Sent {
        /// Number of the request.
        request: u32,
    },
    /// Waits until a receive is complete, of exactly `count` elements.
    Received {
        /// Number of the request.
        request: u32,
        /// Number of elements.
        count: u64,
    },
    /// Copies elements.
    Copy {
        /// First element.
        from: Place,
        /// Place of the first copy.
        to: Place,
        /// Number of elements.
        count: u64,
    },
    /// Combines elements with those of another place, which get the results.
    Reduce {
        /// First element.
        from: Place,
        /// First element to be replaced by a result.
        to: Place,
        /// Number of elements.
        count: u64,
    },
}

/// A table of steps: phases of rounds, each of which has the same number of slots, some of which are empty.
pub(crate) trait Table {
    /// Returns the numbers of rounds and of slots in each round of a phase; None after the last phase.
    fn phase(&self, phase: u32) -> Option<(u64, u32)>;

    /// Returns the step in a slot; None if it is empty.
    fn step(&self, phase: u32, round: u64, slot: u32) -> Option<Step>;

    /// Returns the number of elements of scratch memory.
    fn scratch(&self) -> u64;

    /// Returns an upper limit of the requests' numbers.
    fn requests(&self) -> u32;
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    Broadcast(Broadcast),
    Reduce(Reduce),
    Allgather(Allgather),
    Parts(Parts),
    Alltoall(Alltoall),
}

/// The steps of one rank that are still to come.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    plan: Plan,
    at: Position,
    requests: u32,
    scratch: u64,
}

/// A slot in a table of steps.
#[derive(Clone, Copy, Debug)]
struct Position {
    phase: u32,
    /// Numbers of rounds and slots in the phase.
    rounds: u64,
    slots: u32,
    round: u64,
    slot: u32,
}

impl Position {
    fn first<T: Table>(table: &T) -> Position {
        let (rounds, slots) = table.phase(0).unwrap_or_default();
        Position { phase: 0, rounds, slots, round: 0, slot: 0 }
    }

    /// Returns the next step from here on, and moves behind it.
    fn next<T: Table>(&mut self, table: &T) -> Option<Step> {
        loop {
            while self.round < self.rounds {
                let step = table.step(self.phase, self.round, self.slot);
                self.slot += 1;
                if self.slot == self.slots {
                    (self.round, self.slot) = (self.round + 1, 0);
                }
                if step.is_some() {
                    return step;
                }
            }
            (self.rounds, self.slots) = table.phase(self.phase + 1)?;
            (self.phase, self.round, self.slot) = (self.phase + 1, 0, 0);
        }
    }
}

impl Schedule {
    pub(crate) fn new<T: Table>(table: T, plan: fn(T) -> Plan) -> Schedule {
        let (at, requests, scratch) = (Position::first(&table), table.requests(), table.scratch());
        Schedule { plan: plan(table), at, requests, scratch }
    }

    /// Returns the number of elements of scratch memory that the steps use.
    pub fn scratch(&self) -> u64 {
        self.scratch
    }

    /// Returns a number above those of all requests: at most 12, or 4 for each rank if that is more.
    pub fn requests(&self) -> u32 {
        self.requests
    }
}

impl Iterator for Schedule {
    type Item = Step;

    /// Returns the next step, of which earlier ones have been carried out; None at the end.
    fn next(&mut self) -> Option<Step> {
        match &self.plan {
            Plan::Broadcast(table) => self.at.next(table),
            Plan::Reduce(table) => self.at.next(table),
            Plan::Allgather(table) => self.at.next(table),
            Plan::Parts(table) => self.at.next(table),
            Plan::Alltoall(table) => self.at.next(table),
        }
    }
}
