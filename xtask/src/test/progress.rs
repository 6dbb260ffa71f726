//! The progress of `cargo xtask test --full`, which is stored so that it can continue after it was stopped.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::ui::Tally;
use crate::{paths, version};

/// The steps that are finished, with their counts.
#[derive(Default, Deserialize, Serialize)]
pub struct Progress {
    /// The commit that is tested.
    commit: Option<String>,
    finished: BTreeMap<String, (usize, usize)>,
}

impl Progress {
    /// Reads the progress of an earlier run; empty if that tested another version or has finished all steps.
    pub fn load(steps: usize) -> Self {
        let commit = version::commit();
        let text = fs::read_to_string(file()).unwrap_or_default();
        let stored: Self = serde_json::from_str(&text).unwrap_or_default();
        if stored.commit == commit && stored.finished.len() < steps {
            stored
        } else {
            Self { commit, finished: BTreeMap::new() }
        }
    }

    /// Returns the counts of a step that is finished and had no failures.
    pub fn of(&self, step: &str) -> Option<Tally> {
        let (passed, failed) = *self.finished.get(step)?;
        (failed == 0).then_some(Tally { passed, failed })
    }

    /// Records that a step is finished.
    pub fn finish(&mut self, step: &str, tally: Tally) -> Result<()> {
        self.finished.insert(step.to_string(), (tally.passed, tally.failed));
        let file = file();
        let part = file.with_extension("part");
        fs::write(&part, serde_json::to_string_pretty(self)?)
            .and_then(|()| fs::rename(&part, &file))
            .with_context(|| format!("cannot write {}", paths::shown(&file)))
    }
}

fn file() -> PathBuf {
    paths::target().join("test-full.json")
}
