//! Summaries of a run of the suite.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::run::{Ran, Verdict};
use crate::paths;
use crate::setup::stamp::write_atomically;
use crate::ui::{self, Tally};

/// The counts of a directory's results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    passed: usize,
    failed: usize,
    expected_failures: usize,
    unexpected_passes: usize,
    skipped: usize,
}

impl Counts {
    /// Counts results by kind.
    pub fn of(results: &[Ran]) -> Self {
        let mut counts = Self::default();
        for ran in results {
            match ran.verdict {
                Verdict::Passed => counts.passed += 1,
                Verdict::UnexpectedPass(_) => {
                    counts.passed += 1;
                    counts.unexpected_passes += 1;
                }
                Verdict::Failed(_) => counts.failed += 1,
                Verdict::ExpectedFailure(_) => counts.expected_failures += 1,
                Verdict::Skipped(_) => counts.skipped += 1,
            }
        }
        counts
    }

    /// Returns the number of tests that failed as expected.
    pub fn expected(&self) -> usize {
        self.expected_failures
    }

    /// Returns the counts that decide about the outcome of the command.
    pub fn tally(&self) -> Tally {
        Tally { passed: self.passed, failed: self.failed }
    }

    /// Formats the counts of a directory as one line.
    pub fn line(&self, name: &str, elapsed: Duration) -> String {
        let mut line = format!(
            "  {name:<18} {:>5} passed {:>4} failed {:>4} expected failures  {:>12}",
            self.passed,
            self.failed,
            self.expected_failures,
            ui::seconds(elapsed)
        );
        if self.skipped > 0 {
            line.push_str(&format!("  ({} skipped)", self.skipped));
        }
        line
    }
}

/// Formats a line about a test whose result was not a simple pass; None if it was.
pub fn remark(ran: &Ran) -> Option<String> {
    Some(match &ran.verdict {
        Verdict::Failed(why) => {
            format!("    FAILED {} [{}]: {why}\n           log: {}", ran.id, ran.layout, paths::shown(&ran.log))
        }
        Verdict::UnexpectedPass(reason) => {
            format!("    passed, though expected to fail ({reason}): {}", ran.id)
        }
        Verdict::Skipped(why) => format!("    skipped {}: {why}", ran.id),
        Verdict::Passed | Verdict::ExpectedFailure(_) => return None,
    })
}

#[derive(Serialize)]
struct Report<'a> {
    mpi: String,
    hosts: usize,
    per_host: usize,
    directories: BTreeMap<&'a str, Counts>,
    tests: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    id: &'a str,
    layout: &'a str,
    seconds: f64,
    verdict: &'a str,
    reason: &'a str,
    log: String,
}

/// Writes all results as JSON.
pub fn write(file: &Path, mpi: &Path, (hosts, per_host): (usize, usize), results: &[(String, Vec<Ran>)]) -> Result<()> {
    let report = Report {
        mpi: mpi.display().to_string(),
        hosts,
        per_host,
        directories: results.iter().map(|(dir, ran)| (dir.as_str(), Counts::of(ran))).collect(),
        tests: results.iter().flat_map(|(_, ran)| ran).map(entry).collect(),
    };
    write_atomically(file, &serde_json::to_vec_pretty(&report)?)
}

fn entry(ran: &Ran) -> Entry<'_> {
    let (verdict, reason) = match &ran.verdict {
        Verdict::Passed => ("passed", ""),
        Verdict::UnexpectedPass(reason) => ("unexpected pass", reason.as_str()),
        Verdict::Failed(why) => ("failed", why.as_str()),
        Verdict::ExpectedFailure(reason) => ("expected failure", reason.as_str()),
        Verdict::Skipped(why) => ("skipped", why.as_str()),
    };
    Entry {
        id: &ran.id,
        layout: &ran.layout,
        seconds: (ran.elapsed.as_secs_f64() * 1000.0).round() / 1000.0,
        verdict,
        reason,
        log: ran.log.display().to_string(),
    }
}
