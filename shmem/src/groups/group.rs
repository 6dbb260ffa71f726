//! A team as one of its PEs sees it.

use super::Area;
use crate::handles::Ctx;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A team, or the active set of a deprecated collective.
pub struct Group {
    /// Numbers of its PEs in the world.
    members: Vec<usize>,
    /// Number of this PE in the team.
    me: usize,
    /// Number of contexts that the program has asked for.
    num_contexts: c_int,
    /// Memory for its collectives, with the counts of those that have begun.
    area: Area,
    /// Held during a collective.
    turn: Mutex<()>,
    /// Contexts that the program has created on the team.
    contexts: Mutex<Vec<Ctx>>,
}

impl Group {
    /// Creates a team in which this PE has the number `me`.
    pub fn new(members: Vec<usize>, me: usize, num_contexts: c_int, area: Area) -> Group {
        Group { members, me, num_contexts, area, turn: Mutex::new(()), contexts: Mutex::default() }
    }

    /// Returns the numbers of its PEs in the world.
    pub fn members(&self) -> &[usize] {
        &self.members
    }

    /// Returns true if PEs have the same numbers in the team as in the world.
    pub fn is_in_order(&self) -> bool {
        self.members.iter().enumerate().all(|(number, &pe)| number == pe)
    }

    /// Returns the number of its PEs.
    pub fn n(&self) -> usize {
        self.members.len()
    }

    /// Returns the number of this PE in the team.
    pub fn me(&self) -> usize {
        self.me
    }

    /// Returns the number of contexts that the program has asked for.
    pub fn num_contexts(&self) -> c_int {
        self.num_contexts
    }

    /// Returns the memory for its collectives.
    pub fn area(&self) -> &Area {
        &self.area
    }

    /// Returns the contexts that the program has created on the team.
    pub fn contexts(&self) -> MutexGuard<'_, Vec<Ctx>> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Excludes other threads of this PE from collectives of the team, which the program must not have at once.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
