//! Programs that were not written for ntbring, on a ring of virtual machines: NetPIPE of Debian, and a Python job.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::programs::{one, Traffic};
use super::ring::{Job, Ring};
use crate::paths;
use crate::ui::{self, Tally};

/// Largest message of NetPIPE, bytes: larger ones take too long through the windows of emulated machines.
const LARGEST: u32 = 4096;

/// Runs NetPIPE, as Debian has built it with its MPICH, between the first two machines.
pub fn netpipe(ring: &Ring, limit: Duration) -> Result<Tally> {
    let libraries = ring.setting().mpi.join("lib");
    let job = Job {
        hosts: vec![0, 1],
        ranks: 1,
        program: "NPmpich2".into(),
        args: ["-u", &LARGEST.to_string(), "-o", "/tmp/np.out"].map(str::to_string).to_vec(),
        env: vec![("LD_LIBRARY_PATH".into(), libraries.display().to_string())],
        limit,
        ..Job::default()
    };
    let before = Traffic::now(ring)?;
    let mut tally = one(ring, "NPmpich2 of netpipe-mpich2", &[job], &|_| None)?;
    let rows = ring.console(0)?.root("cat /tmp/np.out")?;
    let count = rows.text().lines().count();
    let bytes = before.windows_since(ring)?;
    println!("    {count} sizes; the last one (bytes, Mbit/s, s): {}", rows.text().lines().last().unwrap_or("none"));
    // Debian's own library would have used the network.
    if count < 10 || bytes < u64::from(LARGEST) {
        tally.failed += 1;
        ui::failed("NetPIPE has not measured, or not through the windows");
    }
    Ok(tally)
}

/// Runs a Python job with mpi4py, which is built with the installed MPI, on all machines.
pub fn python(ring: &Ring, python: &Path, limit: Duration) -> Result<Tally> {
    // The interpreter may lie in the directory of another user.
    let real = fs::canonicalize(python).with_context(|| format!("no {}", python.display()))?;
    let places: Vec<String> = [python, &real]
        .iter()
        .flat_map(|path| path.ancestors().skip(1))
        .map(|place| place.display().to_string())
        .filter(|place| place.len() > 1)
        .collect();
    ring.everywhere(|_| format!("chmod o+x {}", places.join(" ")))?;
    let mut job = ring.job("", 1, limit);
    job.program = python.to_path_buf();
    job.args = vec![paths::root().join("tests/vm/ring.py").display().to_string()];
    one(ring, "tests/vm/ring.py with mpi4py", &[job], &|answer| {
        let said = answer.output.lines().any(|line| line.trim() == "ok ring.py");
        (!said).then(|| "it did not print \"ok ring.py\"".to_string())
    })
}
