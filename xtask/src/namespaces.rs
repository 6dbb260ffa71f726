//! Emulated hosts in separate namespaces, which share nothing but the directory of their windows.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::paths;

/// The directory in which the shared directory of the hosts is made.
const MEMORY: &str = "/dev/shm";

/// The launcher that creates the namespaces, and the directory that hosts share.
pub struct Namespaces {
    launcher: PathBuf,
    shared: TempDir,
}

impl Namespaces {
    /// Returns None if this system does not permit such namespaces.
    pub fn new() -> Result<Option<Self>> {
        let shared = tempfile::Builder::new().prefix("ntbring-").tempdir_in(MEMORY).context("cannot use /dev/shm")?;
        let namespaces = Self { launcher: paths::mpi_programs().join("namespaces.sh"), shared };
        let mut probe = Command::new(&namespaces.launcher);
        let probe = probe.args(["h0", "true"]).env("NTBRING_DEVICE", namespaces.device()).output();
        Ok(probe.is_ok_and(|probe| probe.status.success()).then_some(namespaces))
    }

    fn device(&self) -> String {
        format!("emu:{}", self.shared.path().display())
    }

    /// Returns mpiexec's options that choose the launcher.
    pub fn options(&self) -> Vec<String> {
        ["-launcher", "rsh", "-launcher-exec"]
            .map(String::from)
            .into_iter()
            .chain([self.launcher.display().to_string()])
            .collect()
    }

    /// Returns the environment variables for all ranks.
    pub fn env(&self) -> [(String, String); 1] {
        [("NTBRING_DEVICE".to_string(), self.device())]
    }

    /// Removes the files that jobs have left behind and returns their number.
    pub fn sweep(&self) -> Result<usize> {
        let mut left = 0;
        for entry in fs::read_dir(self.shared.path())? {
            fs::remove_file(entry?.path())?;
            left += 1;
        }
        Ok(left)
    }
}
