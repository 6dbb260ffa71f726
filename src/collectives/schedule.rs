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

/// A table of steps: rounds with the same number of slots each, some of which are empty.
pub(crate) trait Table {
    /// Number of slots in each round.
    const SLOTS: u32;

    /// Returns the number of rounds.
    fn rounds(&self) -> u64;

    /// Returns the step in a slot.
    fn step(&self, round: u64, slot: u32) -> Option<Step>;

    /// Returns the number of elements of scratch memory.
    fn scratch(&self) -> u64;

    /// Returns an upper limit of the requests' numbers.
    fn requests(&self) -> u32;
}

/// Splits rounds into phases of the given lengths. Returns the phase of a round and the round's number in it.
pub(crate) fn phase<const N: usize>(mut round: u64, lengths: [u32; N]) -> (usize, u32) {
    for (phase, &length) in lengths.iter().enumerate() {
        if round < u64::from(length) {
            return (phase, round as u32);
        }
        round -= u64::from(length);
    }
    (N, 0)
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
    round: u64,
    slot: u32,
}

impl Schedule {
    pub(crate) fn new(plan: Plan) -> Schedule {
        Schedule { plan, round: 0, slot: 0 }
    }

    /// Returns the number of elements of scratch memory that the steps use.
    pub fn scratch(&self) -> u64 {
        match &self.plan {
            Plan::Broadcast(table) => table.scratch(),
            Plan::Reduce(table) => table.scratch(),
            Plan::Allgather(table) => table.scratch(),
            Plan::Parts(table) => table.scratch(),
            Plan::Alltoall(table) => table.scratch(),
        }
    }

    /// Returns a number above those of all requests: at most 4 for each rank.
    pub fn requests(&self) -> u32 {
        match &self.plan {
            Plan::Broadcast(table) => table.requests(),
            Plan::Reduce(table) => table.requests(),
            Plan::Allgather(table) => table.requests(),
            Plan::Parts(table) => table.requests(),
            Plan::Alltoall(table) => table.requests(),
        }
    }

    fn next_in<T: Table>(table: &T, round: &mut u64, slot: &mut u32) -> Option<Step> {
        while *round < table.rounds() {
            let step = table.step(*round, *slot);
            *slot += 1;
            if *slot == T::SLOTS {
                (*round, *slot) = (*round + 1, 0);
            }
            if step.is_some() {
                return step;
            }
        }
        None
    }
}

impl Iterator for Schedule {
    type Item = Step;

    /// Returns the next step, of which earlier ones have been carried out; None at the end.
    fn next(&mut self) -> Option<Step> {
        let (round, slot) = (&mut self.round, &mut self.slot);
        match &self.plan {
            Plan::Broadcast(table) => Self::next_in(table, round, slot),
            Plan::Reduce(table) => Self::next_in(table, round, slot),
            Plan::Allgather(table) => Self::next_in(table, round, slot),
            Plan::Parts(table) => Self::next_in(table, round, slot),
            Plan::Alltoall(table) => Self::next_in(table, round, slot),
        }
    }
}
