//! Tests of the suite for another ring than the emulated one: its owner runs the programs and passes the outcomes back.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use super::selection::Reason;
use super::testlist::Test;
use super::{plan, MpichTestArgs, Plan};
use crate::lock::Lock;
use crate::process::Outcome;
use crate::setup::SetupArgs;

/// Tests whose programs are built.
pub struct Elsewhere {
    /// The tests.
    pub cases: Vec<Case>,
    _lock: Lock,
}

/// One test.
pub struct Case {
    test: Test,
    expected: Option<Reason>,
    /// Its executable.
    pub program: PathBuf,
}

impl Elsewhere {
    /// Builds the programs of those tests of CI's part that match one of the patterns.
    pub fn of_ci(setup: SetupArgs, patterns: &[String]) -> Result<Elsewhere> {
        let plan = plan(&MpichTestArgs { patterns: patterns.to_vec(), ..MpichTestArgs::ci(setup) })?;
        plan.build()?;
        let Plan { suite, directories, _lock, .. } = plan;
        let all = directories.into_iter().flat_map(|(_, jobs)| jobs);
        let case = |(test, expected): (Test, Option<Reason>)| {
            let program = suite.build.join(&test.dir).join(&test.program);
            Case { test, expected, program }
        };
        Ok(Elsewhere { cases: all.map(case).collect(), _lock })
    }
}

impl Case {
    /// Returns its identity.
    pub fn id(&self) -> String {
        self.test.id()
    }

    /// Returns the number of its ranks.
    pub fn ranks(&self) -> usize {
        self.test.ranks
    }

    /// Returns the arguments of the program.
    pub fn args(&self) -> &[String] {
        &self.test.args
    }

    /// Returns its variables.
    pub fn env(&self) -> &[(String, String)] {
        &self.test.env
    }

    /// Returns its options for mpiexec.
    pub fn options(&self) -> &[String] {
        &self.test.mpiexec_args
    }

    /// Returns its time limit.
    pub fn limit(&self) -> Duration {
        self.test.limit
    }

    /// Returns the reason for which it cannot show anything; None if it can.
    pub fn why_not(&self) -> Option<String> {
        if let Some(expected) = self.expected.as_ref().filter(|reason| reason.under.is_none()) {
            return Some(format!("it is expected to fail: {}", expected.text));
        }
        (self.test.memory > 0.0).then(|| format!("it needs {} GB of memory", self.test.memory))
    }

    /// Returns `Ok` if it has passed, and otherwise the reason of its failure. `limit` is the time that it had.
    pub fn judge(&self, outcome: &Outcome, output: &str, limit: Duration) -> Result<(), String> {
        self.test.judge.verdict(outcome, output, limit, false)
    }
}
