//! Decides if a test has passed, by the rules of the suite's `runtests` script.

use std::str::FromStr;
use std::time::Duration;

use anyhow::{bail, Error};

use crate::process::Outcome;

/// The suite's ways to judge a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Judge {
    /// Exit status 0, "No Errors" once, and nothing else on either stream.
    #[default]
    NoErrors,
    /// A nonzero exit status is required; the output is ignored.
    Status,
    /// A nonzero exit status and nevertheless "No Errors" are required.
    StatusNoErrors,
}

impl FromStr for Judge {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Ok(match name {
            // The script stops reading at the first line of TestStatus, so that both accept any output in effect.
            "TestStatus" | "TestErrFatal" => Self::Status,
            "TestStatusNoErrors" => Self::StatusNoErrors,
            _ => bail!("unknown resultTest \"{name}\""),
        })
    }
}

impl Judge {
    /// Returns `Ok` if the test has passed, and otherwise the reason of its failure. `limit` is the test's time limit,
    /// which mpiexec enforces (with a nonzero exit status).
    ///
    /// `ends_by_limit`: the test is meant to run into its limit.
    pub fn verdict(self, outcome: &Outcome, output: &str, limit: Duration, ends_by_limit: bool) -> Result<(), String> {
        if outcome.timed_out || (outcome.elapsed >= limit && !ends_by_limit) {
            return Err(format!("out of time: {}", outcome.describe()));
        }
        match self {
            Self::NoErrors => {
                only_no_errors(output)?;
                if !outcome.success() {
                    return Err(outcome.describe());
                }
            }
            Self::Status => nonzero(outcome)?,
            Self::StatusNoErrors => {
                only_no_errors(output)?;
                nonzero(outcome)?;
            }
        }
        Ok(())
    }
}

fn nonzero(outcome: &Outcome) -> Result<(), String> {
    if outcome.success() {
        return Err("exit status 0, but the test requires a nonzero one".to_string());
    }
    Ok(())
}

fn only_no_errors(output: &str) -> Result<(), String> {
    let mut found = false;
    for line in output.lines() {
        match line.trim() {
            "No Errors" | "No errors" if !found => found = true,
            "Test Passed" => {}
            text if text.contains("FORTRAN STOP") => {}
            _ => {
                let start: String = line.chars().take(160).collect();
                return Err(format!("unexpected output: {start}"));
            }
        }
    }
    if !found {
        return Err("it did not print \"No Errors\"".to_string());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    const LIMIT: Duration = Duration::from_secs(10);

    fn ended(code: i32) -> Outcome {
        Outcome { status: ExitStatus::from_raw(code << 8), timed_out: false, elapsed: Duration::from_secs(1) }
    }

    fn passes(judge: Judge, code: i32, output: &str) -> bool {
        judge.verdict(&ended(code), output, LIMIT, false).is_ok()
    }

    #[test]
    fn no_errors_means_just_that() {
        assert!(passes(Judge::NoErrors, 0, " No Errors\n"));
        assert!(passes(Judge::NoErrors, 0, "No errors\nTest Passed\n"));
        assert!(!passes(Judge::NoErrors, 1, " No Errors\n"));
        assert!(!passes(Judge::NoErrors, 0, ""));
        assert!(!passes(Judge::NoErrors, 0, " No Errors\nwarning\n"));
        assert!(!passes(Judge::NoErrors, 0, " No Errors\n No Errors\n"));
        assert!(!passes(Judge::NoErrors, 0, " No Errors\n\n"));
    }

    #[test]
    fn a_wanted_failure_must_fail() {
        assert!(passes("TestStatus".parse().unwrap(), 1, "whatever\n"));
        assert!(!passes("TestErrFatal".parse().unwrap(), 0, ""));
        assert!(passes(Judge::StatusNoErrors, 1, " No Errors\n"));
        assert!(!passes(Judge::StatusNoErrors, 1, "oops\n"));
        assert!(!passes(Judge::StatusNoErrors, 0, " No Errors\n"));
        assert!("TestOther".parse::<Judge>().is_err());
    }

    #[test]
    fn running_out_of_time_is_no_wanted_failure() {
        let mut outcome = ended(1);
        outcome.elapsed = LIMIT;
        assert!(Judge::Status.verdict(&outcome, "", LIMIT, false).is_err());
        assert!(Judge::Status.verdict(&outcome, "", LIMIT, true).is_ok());
        outcome.timed_out = true;
        assert!(Judge::Status.verdict(&outcome, "", LIMIT, true).is_err());
    }
}
