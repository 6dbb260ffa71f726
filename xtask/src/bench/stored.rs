//! All results of one call of `bench`, which `--json` writes and `report --from` reads.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bench::figures::{Figures, Row, MACHINE};
use crate::bench::machine::{Described, Machine};
use crate::bench::papers;
use crate::bench::states::{StateRows, States};
use crate::bench::tables::{table, Table};

/// Figures, and the information that is needed to interpret them.
pub struct Stored {
    /// The machine on which they were measured.
    pub machine: Machine,
    /// The MPIs that took part.
    pub mpis: Vec<Described>,
    /// Number of rounds.
    pub rounds: usize,
    /// True for a quick run.
    pub quick: bool,
    /// The figures.
    pub figures: Figures,
    /// The same figures by states of the machine, as far as states were distinguished.
    pub states: States,
    /// Notes on contestants and tests that were skipped or failed.
    pub notes: Vec<String>,
}

#[derive(Deserialize, Serialize)]
struct File {
    machine: Machine,
    mpis: Vec<Described>,
    rounds: usize,
    quick: bool,
    figures: Vec<Row>,
    #[serde(default)]
    states: Vec<StateRows>,
    notes: Vec<String>,
}

impl Stored {
    /// Returns the names of the other MPIs.
    pub fn peers(&self) -> Vec<&str> {
        self.mpis.iter().filter(|mpi| mpi.peer).map(|mpi| mpi.name.as_str()).collect()
    }

    /// Returns the MPIs that are compared with each other, without those that only an experiment needs.
    pub fn compared(&self) -> impl Iterator<Item = &Described> {
        self.mpis.iter().filter(|mpi| !papers::is_of_experiment(&mpi.name))
    }

    /// Returns a table for each test: first those of the MPIs, then those of the machine.
    pub fn tables(&self) -> Vec<Table> {
        let mpis: Vec<&str> = self.compared().map(|mpi| mpi.name.as_str()).collect();
        let all = self.figures.tests();
        let (machine, others): (Vec<_>, Vec<_>) =
            all.iter().partition(|(test, ranks)| self.figures.has(test, *ranks, MACHINE));
        let of_mpis = others.into_iter().map(|(test, ranks)| table(&self.figures, test, *ranks, &mpis));
        let of_machine = machine.into_iter().map(|(test, ranks)| table(&self.figures, test, *ranks, &[MACHINE]));
        of_mpis.chain(of_machine).filter(|table| !table.rows.is_empty()).collect()
    }

    /// Writes everything to a file, as JSON.
    pub fn write(&self, file: &Path) -> Result<()> {
        self.write_with(file, None)
    }

    /// Writes everything to a file, as JSON, with further content under a name of its own.
    pub fn write_with(&self, file: &Path, more: Option<(&str, Value)>) -> Result<()> {
        let content = File {
            machine: self.machine.clone(),
            mpis: self.mpis.clone(),
            rounds: self.rounds,
            quick: self.quick,
            figures: self.figures.rows(),
            states: self.states.rows(),
            notes: self.notes.clone(),
        };
        let mut content = serde_json::to_value(&content)?;
        if let (Some(object), Some((name, value))) = (content.as_object_mut(), more) {
            object.insert(name.to_string(), value);
        }
        fs::write(file, serde_json::to_string_pretty(&content)?)
            .with_context(|| format!("cannot write {}", file.display()))
    }

    /// Reads a file that [`Stored::write`] has written.
    pub fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let File { machine, mpis, rounds, quick, figures, states, notes } = serde_json::from_str(&text)
            .with_context(|| format!("{} was not written by `cargo xtask bench --json`", file.display()))?;
        let (figures, states) = (Figures::of_rows(figures), States::of_rows(states));
        Ok(Self { machine, mpis, rounds, quick, figures, states, notes })
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Returns results with at least one element of every kind.
    pub fn example() -> Stored {
        let mut figures = Figures::default();
        let mut add = |mpi: &str, test: &str, bytes: u64, value: f64, unit: &str| {
            let line = format!("{{\"test\":\"{test}\",\"bytes\":{bytes},\"value\":{value},\"unit\":\"{unit}\"}}");
            figures.add(mpi, 2, &line);
        };
        for (index, bytes) in [0, 8, 1024, 65536].into_iter().enumerate() {
            add("ntbring", "latency", bytes, 0.1 + index as f64, "us");
            add("other", "latency", bytes, 0.2 + index as f64, "us");
        }
        add("ntbring", "barrier", 0, 1.5, "us");
        add(MACHINE, "cacheline", 0, 0.06, "us");
        let mpi = |name: &str, peer| Described {
            name: name.to_string(),
            what: "an <MPI>".to_string(),
            version: "1".to_string(),
            configure: "--with-all".to_string(),
            command: "mpiexec".to_string(),
            env: vec!["A=1".to_string()],
            peer,
        };
        let machine = Machine {
            lines: vec![("cpu".to_string(), "fast & small".to_string())],
            warnings: vec!["not idle".to_string()],
        };
        let mpis = vec![mpi("ntbring", false), mpi("other", true)];
        let (states, notes) = (States::default(), vec!["third: skipped".to_string()]);
        Stored { machine, mpis, rounds: 1, quick: true, figures, states, notes }
    }

    #[test]
    fn a_file_keeps_all() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("all.json");
        let stored = example();
        stored.write(&file).unwrap();
        let again = Stored::read(&file).unwrap();
        assert_eq!(again.peers(), ["other"]);
        assert_eq!(again.figures.median("latency", 2, 8, "other"), stored.figures.median("latency", 2, 8, "other"));
        let titles: Vec<String> = again.tables().into_iter().map(|table| table.title).collect();
        assert_eq!(titles, ["barrier, 2 ranks, us", "latency, 2 ranks, us", "cacheline, us"]);
        fs::write(&file, "{}").unwrap();
        assert!(Stored::read(&file).is_err());
    }
}
