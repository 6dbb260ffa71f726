//! mpi4py, built with the installed mpicc, and its whole test suite.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::bench::Bench;
use crate::setup::packages;
use crate::{process, ui};

/// Numbers of ranks, each of which runs on its own host.
const RANKS: [usize; 4] = [1, 2, 4, 5];

/// Time limit. The suite takes a minute on one rank, and several where ranks share cores.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// Builds mpi4py, unless that has been done, and runs its tests.
pub fn tests(bench: &mut Bench) -> Result<()> {
    let (python, source) = build(bench)?;
    for ranks in RANKS {
        let mut command = bench.mpiexec(ranks);
        command.arg(&python).args(["test/main.py", "-q"]).current_dir(&source);
        let name = format!("mpi4py on {ranks} rank(s)");
        bench.test(&name, &mut command, LIMIT, None)?;
        let text = fs::read_to_string(bench.log(&name))?;
        for line in text.lines().filter(|line| line.starts_with("Ran ") || line.starts_with("OK")).take(2) {
            println!("    {line}");
        }
    }
    Ok(())
}

/// Builds mpi4py, unless that has been done. Returns the interpreter that has it, and the directory of its source.
pub fn build(bench: &Bench) -> Result<(PathBuf, PathBuf)> {
    packages::install(&["python3-venv", "python3-dev"])?;
    let venv = bench.place.join("venv");
    let log = bench.log("build");
    let python = venv.join("bin/python");
    if !python.exists() {
        process::check_logged(Command::new("python3").args(["-m", "venv"]).arg(&venv), &log)?;
    }
    let source = match source(&bench.place)? {
        Some(source) => source,
        None => {
            let mut download = pip(&python, &bench.place);
            download.args(["download", "--no-binary", ":all:", "--no-deps", "mpi4py"]);
            process::check_logged(&mut download, &log)?;
            let mut unpack = Command::new("sh");
            unpack.current_dir(&bench.place).args(["-c", "tar -xzf mpi4py-*.tar.gz"]);
            process::check_logged(&mut unpack, &log)?;
            source(&bench.place)?.context("pip has fetched no source of mpi4py")?
        }
    };
    let done = bench.place.join("built-with");
    let with = bench.tool("mpicc").display().to_string();
    if fs::read_to_string(&done).ok().as_ref() != Some(&with) {
        ui::step("build: mpi4py (minutes)", || {
            let mut install = pip(&python, &bench.place);
            install.args(["install", "--force-reinstall", "numpy"]).arg(&source).env("MPICC", &with);
            process::check_logged(&mut install, &log)
        })?;
        fs::write(&done, &with)?;
    }
    Ok((python, source))
}

fn pip(python: &Path, place: &Path) -> Command {
    let mut command = Command::new(python);
    command.current_dir(place).args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
    command
}

/// Returns the directory in which its source was unpacked, if there is one.
fn source(place: &Path) -> Result<Option<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        if path.join("test/main.py").exists() {
            found.push(path);
        }
    }
    Ok(found.pop())
}
