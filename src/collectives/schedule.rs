//! Schedules: the steps of one rank, in their order.

use crate::allgather::Allgather;
use crate::alltoall::Alltoall;
use crate::broadcast::Broadcast;
use crate::parts::Parts;
use crate::reduce::Reduce;
use crate::step::{Step, Table};

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

    /// Returns a number above those of all requests: at most 64, or 4 for each rank if that is more.
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
