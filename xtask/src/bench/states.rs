//! The states of the machine: how far its first two cores are from each other.
//!
//! A hypervisor moves the cores of a virtual machine about: now they are threads of one core, a few seconds later they share
//! no cache. What takes 0.15 us in one state takes 0.7 us in another, and a median over several says nothing. So the
//! distance is measured before and after every run, and figures are compared only with figures of the same state.

use serde::{Deserialize, Serialize};

use crate::bench::figures::{Figures, Row};

/// Distances that differ by less than this factor are the same state.
const ALIKE: f64 = 1.4;

/// A figure in one state is worth something if it is the median of so many.
const ENOUGH: usize = 5;

/// The same, but not more than there are rounds: a first look has fewer.
pub fn enough(rounds: usize) -> usize {
    ENOUGH.min(rounds)
}

/// What was measured while the cores were so far apart.
#[derive(Clone, Debug)]
pub struct State {
    /// Half the round trip of a cache line between them, us.
    pub cores_us: f64,
    /// All values of that state.
    pub figures: Figures,
}

/// As a file keeps it.
#[derive(Debug, Deserialize, Serialize)]
pub struct StateRows {
    cores_us: f64,
    figures: Vec<Row>,
}

/// One of the figures that are compared with each other.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Whose.
    pub mpi: &'a str,
    /// Of what.
    pub test: &'a str,
    /// On how many ranks.
    pub ranks: usize,
    /// Of what size.
    pub bytes: u64,
}

/// All that were seen.
#[derive(Clone, Debug, Default)]
pub struct States(Vec<State>);

impl States {
    /// The number of the state with that distance.
    pub fn number(&mut self, cores_us: f64) -> usize {
        let alike = |state: &State| state.cores_us.max(cores_us) < ALIKE * state.cores_us.min(cores_us);
        self.0.iter().position(alike).unwrap_or_else(|| {
            self.0.push(State { cores_us, figures: Figures::default() });
            self.0.len() - 1
        })
    }

    /// The figures of a state.
    pub fn figures_mut(&mut self, number: usize) -> &mut Figures {
        &mut self.0[number].figures
    }

    /// The state in which the fewest values of any of these figures are the most, if they are `enough`.
    pub fn best(&self, wanted: &[Wanted<'_>], enough: usize) -> Option<&State> {
        let count = |state: &State, one: &Wanted<'_>| {
            state.figures.values(one.test, one.ranks, one.bytes, one.mpi).map_or(0, <[f64]>::len)
        };
        let fewest = |state: &State| wanted.iter().map(|one| count(state, one)).min().unwrap_or(0);
        // Of equals the first.
        let best = self.0.iter().rev().max_by_key(|state| fewest(state))?;
        (fewest(best) >= enough).then_some(best)
    }

    /// For a file.
    pub fn rows(&self) -> Vec<StateRows> {
        self.0.iter().map(|state| StateRows { cores_us: state.cores_us, figures: state.figures.rows() }).collect()
    }

    /// From a file.
    pub fn of_rows(rows: Vec<StateRows>) -> Self {
        let state = |rows: StateRows| State { cores_us: rows.cores_us, figures: Figures::of_rows(rows.figures) };
        Self(rows.into_iter().map(state).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(states: &mut States, cores_us: f64, mpi: &str, values: &[f64]) {
        let number = states.number(cores_us);
        for value in values {
            let line = format!("{{\"test\":\"latency\",\"bytes\":8,\"value\":{value},\"unit\":\"us\"}}");
            states.figures_mut(number).add(mpi, 2, &line);
        }
    }

    #[test]
    fn figures_of_the_same_state_are_compared() {
        let mut states = States::default();
        add(&mut states, 0.08, "a", &[1.0, 2.0, 3.0]);
        add(&mut states, 0.30, "a", &[5.0, 6.0, 7.0]);
        add(&mut states, 0.33, "a", &[8.0]);
        add(&mut states, 0.31, "b", &[4.0, 5.0, 6.0]);
        add(&mut states, 0.07, "b", &[1.0, 1.0]);
        let wanted = ["a", "b"].map(|mpi| Wanted { mpi, test: "latency", ranks: 2, bytes: 8 });
        let best = states.best(&wanted, 3).unwrap();
        assert_eq!((best.cores_us, best.figures.median("latency", 2, 8, "a")), (0.30, Some(6.5)));
        // Of one alone the state with the most.
        assert_eq!(states.best(&wanted[1..], 3).unwrap().cores_us, 0.30);
        assert!(states.best(&wanted, 4).is_none());
        assert_eq!([3, 15].map(enough), [3, 5]);
        let nobody = Wanted { mpi: "c", ..wanted[0] };
        assert!(states.best(&[wanted[0], nobody], 3).is_none());
        let again = States::of_rows(serde_json::from_str(&serde_json::to_string(&states.rows()).unwrap()).unwrap());
        assert_eq!(again.best(&wanted, 3).unwrap().cores_us, 0.30);
    }
}
