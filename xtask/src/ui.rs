//! Output for the user: one line for each step, the end of a log on failure, tables, counts.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::iter::Sum;
use std::ops::AddAssign;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Error, Result};
use comfy_table::{presets, CellAlignment, Table};

use crate::paths;

/// Width of the column that holds the name of a step.
const NAME_WIDTH: usize = 56;

/// Number of lines of a log that are shown when its step fails.
const TAIL_LINES: usize = 30;

/// Formats a duration in seconds, or in minutes and seconds.
pub fn seconds(time: Duration) -> String {
    let total = time.as_secs_f64();
    if total < 60.0 {
        format!("{total:.1} s")
    } else {
        format!("{} min {:02} s", time.as_secs() / 60, time.as_secs() % 60)
    }
}

/// Runs `work` and shows it as one line: its name, then outcome and elapsed time.
pub fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    step_timed(name, || {
        let start = Instant::now();
        (work(), start.elapsed())
    })
}

/// Shows `work` as [`step`] does, with the time that it returns: of work that began before.
pub fn step_timed<T>(name: &str, work: impl FnOnce() -> (Result<T>, Duration)) -> Result<T> {
    print!("  {name:<NAME_WIDTH$} ");
    flush();
    let (result, elapsed) = work();
    let outcome = if result.is_ok() { "done" } else { "FAILED" };
    println!("{outcome:<6} {:>12}", seconds(elapsed));
    flush();
    result.map_err(|error| error.context(format!("the step \"{name}\" failed")))
}

/// Shows a step that is over already: one that turns out only at its end to have had something to do.
pub fn done(name: &str, elapsed: Duration) {
    println!("  {name:<NAME_WIDTH$} {:<6} {:>12}", "done", seconds(elapsed));
    flush();
}

/// Returns the last lines of a log, indented.
pub fn tail(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.len().saturating_sub(TAIL_LINES);
    let mut out = String::new();
    for line in &lines[first..] {
        out.push_str("    | ");
        // A line without an end (progress bars, binary output) would hide the rest.
        out.extend(line.chars().take(300));
        out.push('\n');
    }
    out
}

/// Returns an error that names the log and shows its last lines.
pub fn error_with_log(what: impl fmt::Display, log: &Path) -> Error {
    anyhow::anyhow!("{what}\n  log: {}, which ends with:\n{}", paths::shown(log), tail(log))
}

/// Flushes standard output, so that all text is visible before a long operation starts.
pub fn flush() {
    // An error is ignored: nothing useful can be done once standard output is closed.
    let _ = io::stdout().flush();
}

/// Formats a plain table in which all columns but the first are right-aligned.
pub fn table<S: AsRef<str>>(header: &[S], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(header.iter().map(AsRef::as_ref));
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        if column.index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
        column.set_padding((1, 1));
    }
    table.trim_fmt()
}

/// The names of tests that have failed, which are repeated at the end of the output.
static FAILED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Records that a test has failed. Its name is repeated at the end, since the details may have scrolled away.
pub fn failed(name: impl Into<String>) {
    FAILED.lock().unwrap_or_else(PoisonError::into_inner).push(name.into());
}

/// Returns one line for each test that has failed; an empty text if there is none.
pub fn all_failed() -> String {
    let names = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
    names.iter().map(|name| format!("FAILED {name}\n")).collect()
}

/// The numbers of tests that passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tests that passed.
    pub passed: usize,
    /// Tests that failed, without expected failures.
    pub failed: usize,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} passed, {} failed", self.passed, self.failed)
    }
}
