//! shmem4py, built with the installed oshcc, and its whole test suite.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::bench::{fresh, Bench};
use crate::mpi::Layout;
use crate::setup::packages;
use crate::{process, ui};

/// The version whose tests are known.
const VERSION: &str = "1.0.0";

/// It was written for the first generation of numpy: with the second, its `array` and some of its tests fail before
/// they call the library.
const NUMPY: &str = "numpy<2";

/// Numbers of PEs and of hosts.
const LAYOUTS: [(usize, usize); 5] = [(1, 1), (2, 1), (2, 2), (4, 4), (8, 4)];

/// Time limit of the suite, which takes a few seconds, and more if other processes use the cores.
const LIMIT: Duration = Duration::from_secs(180);

/// Parts of OpenSHMEM, of which shmem4py assumes that an unknown library lacks them: it then defines functions of the
/// same names.
const PRESENT: [&str; 20] = [
    "shmem_malloc_with_hints",
    "shmem_team_t",
    "SHMEM_CTX_INVALID",
    "shmem_amo_nbi",
    "shmem_put_signal",
    "shmem_signal_fetch",
    "shmem_signal_wait_until",
    "shmem_broadcast",
    "shmem_collect",
    "shmem_fcollect",
    "shmem_alltoall",
    "shmem_alltoalls",
    "shmem_broadcastmem",
    "shmem_collectmem",
    "shmem_fcollectmem",
    "shmem_alltoallmem",
    "shmem_alltoallsmem",
    "shmem_reduce",
    "shmem_wait_test_many",
    "shmem_pcontrol",
];

/// Tests that are not run where several hosts have several PEs each, and the reason.
const ALL_OR_NONE: [&str; 2] = ["test_ptr.TestPtr.testPtrMemory", "test_ptr.TestPtr.testPtrArray"];
const WHY: &str = "has PEs wait for each other only where shmem_ptr reaches both neighbours";

/// Builds shmem4py, unless that has been done, and runs its tests.
pub fn tests(bench: &mut Bench) -> Result<()> {
    let (python, source) = build(bench)?;
    let runner = bench.sources().join("run_shmem4py.py");
    for (ranks, hosts) in LAYOUTS {
        let layout = Layout::spread(ranks, hosts);
        let name = format!("shmem4py on {}", layout.describe());
        let mut command = bench.oshrun(&layout);
        command.arg(&python).arg("-B").arg(&runner).arg(source.join("test"));
        let left_out: &[&str] = if hosts > 1 && ranks > hosts { &ALL_OR_NONE } else { &[] };
        command.args(left_out).current_dir(&bench.place);
        bench.judged(&name, &mut command, LIMIT, 1, |text| counts(text, ranks).err())?;
        if let Ok(line) = counts(&fs::read_to_string(bench.log(&name))?, ranks) {
            println!("    {line}, on each PE");
        }
        for test in left_out {
            println!("    {test} not run: it {WHY}");
        }
    }
    Ok(())
}

/// Returns the counts that all PEs have printed; an error if they differ, or if no test has passed.
fn counts(text: &str, ranks: usize) -> Result<String, String> {
    let mut all = Vec::new();
    for rank in 0..ranks {
        let start = format!("PE {rank}: ");
        let line = text.lines().find_map(|line| line.strip_prefix(&start));
        all.push(line.ok_or(format!("PE {rank} has not printed its counts"))?);
    }
    match all.iter().find(|line| **line != all[0]) {
        Some(other) => Err(format!("the counts of the PEs differ: {}; {other}", all[0])),
        None if all[0].starts_with("0 passed") => Err("no test has passed".to_string()),
        None => Ok(all[0].to_string()),
    }
}

/// Builds shmem4py, unless that has been done for the same header. Returns the interpreter that has it, and the
/// directory of its source.
fn build(bench: &Bench) -> Result<(PathBuf, PathBuf)> {
    let (place, oshcc) = (&bench.place, bench.tool("oshcc"));
    let python = place.join("venv/bin/python");
    let source = place.join(format!("shmem4py-{VERSION}"));
    let done = place.join("built-with");
    let defined: Vec<String> = PRESENT.iter().map(|part| format!("-DPySHMEM_HAVE_{part}=1")).collect();
    // The library is tested, not the speed of its bindings: optimization would take most of the build's time.
    let flags = format!("{} -O0", defined.join(" "));
    let header = fs::read_to_string(bench.mpi.prefix().join("include/shmem.h")).context("the headers of OpenSHMEM")?;
    let with = format!("{VERSION} {NUMPY}\n{}\n{flags}\n{header}", oshcc.display());
    if fs::read_to_string(&done).ok().as_ref() == Some(&with) {
        return Ok((python, source));
    }
    packages::install(&["python3-venv", "python3-dev"])?;
    fresh(place)?;
    ui::step("build: shmem4py", || {
        let log = bench.log("build");
        process::check_logged(Command::new("python3").args(["-m", "venv"]).arg(place.join("venv")), &log)?;
        let needs = ["install", "setuptools", "wheel", "cffi", NUMPY];
        process::check_logged(pip(&python, place).args(needs), &log)?;
        let mut download = pip(&python, place);
        download.args(["download", "--no-deps", "--no-build-isolation", "--no-binary", "shmem4py"]);
        process::check_logged(download.arg(format!("shmem4py=={VERSION}")), &log)?;
        let mut unpack = Command::new("tar");
        unpack.current_dir(place).args(["-xzf", &format!("shmem4py-{VERSION}.tar.gz")]);
        process::check_logged(&mut unpack, &log)?;
        let mut install = pip(&python, place);
        install.args(["install", "--no-deps", "--no-build-isolation"]).arg(&source);
        process::check_logged(install.env("OSHCC", &oshcc).env("CFLAGS", &flags), &log)
    })?;
    fs::write(&done, &with)?;
    Ok((python, source))
}

fn pip(python: &Path, place: &Path) -> Command {
    let mut command = Command::new(python);
    command.current_dir(place).args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
    command
}

#[cfg(test)]
mod tests {
    use super::counts;

    #[test]
    fn every_pe_reports_the_same_counts() {
        let line = "108 passed, 0 failed, 2 skipped";
        assert_eq!(counts(&format!("\nPE 1: {line}\n\nPE 0: {line}\n"), 2).as_deref(), Ok(line));
        assert!(counts(&format!("PE 0: {line}\n"), 2).is_err());
        assert!(counts(&format!("PE 0: {line}\nPE 1: 1 passed, 0 failed, 0 skipped\n"), 2).is_err());
        assert!(counts("PE 0: 0 passed, 0 failed, 0 skipped\n", 1).is_err());
    }
}
