//! The wheel in an empty Python environment, with mpi4py's ready-made one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{ensure, Context, Result};

use super::{of_downloads, write_programs, Trial};
use crate::paths;
use crate::setup::packages;

/// A Python environment. Commands see it as one that is active, and no other variables of the user.
struct Environment {
    root: PathBuf,
    /// Directory in which the programs are compiled and run.
    place: PathBuf,
}

impl Environment {
    /// Returns a command of the environment, or of the system.
    fn command(&self, words: &[&str]) -> Command {
        let bin = self.root.join("bin");
        let own = bin.join(words[0]);
        let mut command = match own.exists() {
            true => Command::new(own),
            false => Command::new(words[0]),
        };
        command.args(&words[1..]).current_dir(&self.place).env_clear();
        command.env("PATH", format!("{}:/usr/bin:/bin", bin.display())).env("HOME", &self.place).env("LANG", "C.UTF-8");
        command
    }

    /// Returns a call of pip.
    fn pip(&self, words: &[&str]) -> Command {
        let mut command = self.command(&["python", "-m", "pip", "--disable-pip-version-check"]);
        command.args(words);
        command.envs(of_downloads());
        command
    }
}

/// Installs the wheel and mpi4py's in an empty environment and runs programs, also after the environment was moved.
pub fn wheel(wheel: &Path) -> Result<Trial> {
    packages::install(&["python3-venv"])?;
    let place = paths::target().join("packages/check");
    paths::remove(&place)?;
    let trial = Trial::run("wheel", |trial| {
        write_programs(&place)?;
        let fresh = Environment { root: place.join("env"), place: place.clone() };
        install(trial, &fresh, wheel)?;
        programs(trial, &fresh, "")?;
        let moved = Environment { root: place.join("elsewhere/env"), place: place.clone() };
        fs::create_dir_all(place.join("elsewhere"))?;
        fs::rename(&fresh.root, &moved.root).context("cannot move the environment")?;
        programs(trial, &moved, ", moved")?;
        let removed = "Successfully uninstalled";
        trial.step("pip uninstall", &mut moved.pip(&["uninstall", "-y", "ntbring"]), removed)?;
        ensure!(!moved.root.join("lib/libmpi.so.12").exists(), "wheel: pip uninstall has left files behind");
        Ok(())
    })?;
    paths::remove(&place)?;
    Ok(trial)
}

fn install(trial: &mut Trial, env: &Environment, wheel: &Path) -> Result<()> {
    let file = wheel.to_str().context("the path of the wheel is not UTF-8")?;
    let root = env.root.to_str().context("the path of the environment is not UTF-8")?;
    trial.step("python3 -m venv", &mut env.command(&["/usr/bin/python3", "-m", "venv", root]), "")?;
    trial.step("pip install ntbring", &mut env.pip(&["install", file]), "Successfully installed")?;
    trial.step("pip install mpi4py", &mut env.pip(&["install", "--only-binary", "mpi4py", "mpi4py"]), "Successfully")
}

fn programs(trial: &mut Trial, env: &Environment, state: &str) -> Result<()> {
    let steps = [
        ("mpi4py, one host", "mpiexec -n 4 python -m mpi4py.bench ringtest", "time for"),
        ("mpi4py, 4 hosts", "ntbring run -H 4 python -m mpi4py.bench ringtest", "time for"),
        ("mpicc", "mpicc mpi.c -o mpi", ""),
        ("C, one host", "mpiexec -n 4 ./mpi", "sum 6 of 4 ranks"),
        ("C, 4 hosts of 2 ranks", "ntbring run -H 4 -n 8 ./mpi", "sum 28 of 8 ranks"),
        ("mpicxx", "mpicxx -x c++ mpi.c -o mpi", ""),
        ("C++, 4 hosts", "ntbring run -H 4 ./mpi", "sum 6 of 4 ranks"),
        ("mpifort", "mpifort mpi.f90 -o mpi", ""),
        ("Fortran, 4 hosts", "ntbring run -H 4 ./mpi", "sum 6 of 4 ranks"),
        ("oshcc", "oshcc shmem.c -o shmem", ""),
        ("OpenSHMEM, one host", "oshrun -np 4 ./shmem", "sum 6 of 4 PEs"),
        ("OpenSHMEM, 4 hosts", "ntbring run -H 4 ./shmem", "sum 6 of 4 PEs"),
    ];
    for (what, command, expected) in steps {
        let words: Vec<&str> = command.split(' ').collect();
        trial.step(&format!("{what}{state}"), &mut env.command(&words), expected)?;
    }
    Ok(())
}
