//! The states of the machine, distinguished by the latency between its first two cores.
//!
//! A hypervisor moves the virtual cores of a machine between physical ones: at one time two of them are threads of one
//! core, a few seconds later they share no cache. An operation that takes 0.15 us in one state takes 0.7 us in another,
//! and a median over several states is meaningless. So the latency is measured before and after every run, and figures
//! are compared only with figures of the same state.

use serde::{Deserialize, Serialize};

use crate::bench::figures::{Figures, Row};

/// Latencies whose ratio is below this belong to the same state.
const ALIKE: f64 = 1.4;

/// Number of values from which the median of a figure in one state is meaningful.
const ENOUGH: usize = 5;

/// Returns that number, but at most the number of rounds, which is smaller in a quick run.
pub fn enough(rounds: usize) -> usize {
    ENOUGH.min(rounds)
}

/// The figures that were measured in one state.
#[derive(Clone, Debug)]
pub struct State {
    /// Half the round trip of a cache line between the two cores, in us.
    pub cores_us: f64,
    /// All values that were measured in that state.
    pub figures: Figures,
}

/// A state as it is stored in a file.
#[derive(Debug, Deserialize, Serialize)]
pub struct StateRows {
    cores_us: f64,
    figures: Vec<Row>,
}

/// The identity of one of the figures that are compared with each other.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Name of the contestant.
    pub mpi: &'a str,
    /// Name of the test.
    pub test: &'a str,
    /// Number of ranks.
    pub ranks: usize,
    /// Size in bytes.
    pub bytes: u64,
}

/// All states that were seen.
#[derive(Clone, Debug, Default)]
pub struct States(Vec<State>);

impl States {
    /// Returns the number of the state with that latency, adding a state if there is none.
    pub fn number(&mut self, cores_us: f64) -> usize {
        let alike = |state: &State| state.cores_us.max(cores_us) < ALIKE * state.cores_us.min(cores_us);
        self.0.iter().position(alike).unwrap_or_else(|| {
            self.0.push(State { cores_us, figures: Figures::default() });
            self.0.len() - 1
        })
    }

    /// Returns the figures of a state.
    pub fn figures_mut(&mut self, number: usize) -> &mut Figures {
        &mut self.0[number].figures
    }

    /// Returns the state in which the figure with the fewest values has the most of them; None if these are fewer than
    /// `enough`.
    pub fn best(&self, wanted: &[Wanted<'_>], enough: usize) -> Option<&State> {
        let count = |state: &State, one: &Wanted<'_>| {
            state.figures.values(one.test, one.ranks, one.bytes, one.mpi).map_or(0, <[f64]>::len)
        };
        let fewest = |state: &State| wanted.iter().map(|one| count(state, one)).min().unwrap_or(0);
        // The reversal makes `max_by_key`, which returns the last of equal elements, return the first one.
        let best = self.0.iter().rev().max_by_key(|state| fewest(state))?;
        (fewest(best) >= enough).then_some(best)
    }

    /// Converts the states to rows of a file.
    pub fn rows(&self) -> Vec<StateRows> {
        self.0.iter().map(|state| StateRows { cores_us: state.cores_us, figures: state.figures.rows() }).collect()
    }

    /// Converts the rows of a file to states.
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
        // With a single figure, the state with the most values of it.
        assert_eq!(states.best(&wanted[1..], 3).unwrap().cores_us, 0.30);
        assert!(states.best(&wanted, 4).is_none());
        assert_eq!([3, 15].map(enough), [3, 5]);
        let nobody = Wanted { mpi: "c", ..wanted[0] };
        assert!(states.best(&[wanted[0], nobody], 3).is_none());
        let again = States::of_rows(serde_json::from_str(&serde_json::to_string(&states.rows()).unwrap()).unwrap());
        assert_eq!(again.best(&wanted, 3).unwrap().cores_us, 0.30);
    }
}
