//! Checks that are counted: each prints a line.

use crate::ui::{self, Tally};

/// The checks of one scenario.
pub struct Checks {
    name: String,
    tally: Tally,
}

impl Checks {
    /// Begins a scenario.
    pub fn new(name: impl Into<String>) -> Checks {
        let name = name.into();
        println!("{name}:");
        Checks { name, tally: Tally::default() }
    }

    /// Compares what was found with what was expected.
    pub fn equal(&mut self, what: &str, expected: &str, found: &str) {
        self.that(what, expected == found, &format!("expected {expected}, found {found}"));
    }

    /// Counts a check that passes if `is_so`.
    pub fn that(&mut self, what: &str, is_so: bool, found: &str) {
        println!("  {what:<64} {}  {found}", if is_so { "passed" } else { "FAILED" });
        ui::flush();
        match is_so {
            true => self.tally.passed += 1,
            false => {
                self.tally.failed += 1;
                ui::failed(format!("{}: {what}: {found}", self.name));
            }
        }
    }

    /// Returns the counts.
    pub fn tally(self) -> Tally {
        self.tally
    }
}
