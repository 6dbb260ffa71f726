//! Tries the packages as a user would: in an empty Python environment, and in fresh Debian systems.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};

use super::VERSION;
use crate::setup::{apt, packages};
use crate::{paths, process, ui};

/// A program of a user.
const PROGRAM: &str = r#"#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("sum %d of %d ranks\n", sum, size);
    MPI_Finalize();
    return 0;
}
"#;

/// What the program prints on 4 ranks.
const EXPECTED: &str = "sum 6 of 4 ranks";

/// Time limit of each step.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// A place in which commands are run, one after the other.
struct Trial {
    name: String,
    log: PathBuf,
    passed: usize,
}

impl Trial {
    fn new(name: &str) -> Result<Self> {
        let log = paths::logs().join(format!("package-{name}.log"));
        paths::remove(&log)?;
        Ok(Self { name: name.to_string(), log, passed: 0 })
    }

    /// Runs a command, which must succeed and print `expected`.
    fn step(&mut self, what: &str, command: &mut Command, expected: &str) -> Result<()> {
        let began = Instant::now();
        let file = paths::logs().join("package-step.out");
        let outcome = process::run_captured(command, &file, Some(LIMIT))?;
        let text = fs::read_to_string(&file).unwrap_or_default();
        let mut log = fs::read_to_string(&self.log).unwrap_or_default();
        log += &format!("# {what}: {}\n{text}\n", process::shown(command));
        fs::write(&self.log, log).with_context(|| format!("cannot write {}", self.log.display()))?;
        if !outcome.success() || !text.contains(expected) {
            return Err(ui::error_with_log(format!("{}: {what}: {}", self.name, outcome.describe()), &self.log));
        }
        println!("  {:34} {}", format!("{}: {what}", self.name), ui::seconds(began.elapsed()));
        self.passed += 1;
        Ok(())
    }
}

/// Returns a command without the variables that could help it to find another MPI.
fn bare(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin").env("HOME", "/tmp").env("LANG", "C.UTF-8");
    command
}

/// Installs the wheel and mpi4py's own one in an empty environment, and runs programs: also after the environment was
/// moved. Returns the number of steps.
pub fn wheel(wheel: &Path) -> Result<usize> {
    packages::install(&["python3-venv"])?;
    let place = paths::target().join("packages/check");
    paths::remove(&place)?;
    fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    fs::write(place.join("hello.c"), PROGRAM)?;
    let mut trial = Trial::new("wheel")?;
    let (env, moved) = (place.join("env"), place.join("moved"));
    trial.step("python3 -m venv", bare(Path::new("python3")).args(["-m", "venv"]).arg(&env), "")?;
    let pip = |what: &Path| {
        let mut pip = bare(&env.join("bin/python"));
        pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--progress-bar=off"]).arg(what);
        // Where packages come from.
        for (name, value) in std::env::vars().filter(|(name, _)| name.starts_with("PIP_") || name.ends_with("_proxy")) {
            pip.env(name, value);
        }
        pip
    };
    trial.step("pip install ntbring", &mut pip(wheel), "Successfully installed")?;
    trial.step("pip install mpi4py", &mut pip(Path::new("mpi4py")), "Successfully installed")?;
    for (env, state) in [(&env, ""), (&moved, ", moved")] {
        if env == &moved {
            fs::rename(place.join("env"), &moved)?;
        }
        let python = env.join("bin/python");
        let mpiexec = || bare(&env.join("bin/mpiexec"));
        let what = |text: &str| format!("{text}{state}");
        let bench = ["-m", "mpi4py.bench", "ringtest"];
        trial.step(&what("mpi4py, one host"), mpiexec().args(["-n", "4"]).arg(&python).args(bench), "time for")?;
        let hosts = ["-launcher", "fork", "-hosts", "h0,h1,h2,h3", "-n", "4"];
        trial.step(&what("mpi4py, 4 hosts"), mpiexec().args(hosts).arg(&python).args(bench), "time for")?;
        let (source, program) = (place.join("hello.c"), place.join("hello"));
        let mut mpicc = bare(&env.join("bin/mpicc"));
        trial.step(&what("mpicc"), mpicc.arg(&source).arg("-o").arg(&program), "")?;
        let mut run = bare(&env.join("bin/ntbring"));
        trial.step(&what("ntbring run"), run.args(["run", "-H", "2", "-n", "4"]).arg(&program), EXPECTED)?;
    }
    let mut pip = bare(&moved.join("bin/python"));
    trial.step("pip uninstall", pip.args(["-m", "pip", "uninstall", "-y", "ntbring"]), "Successfully uninstalled")?;
    if moved.join("lib/libmpi.so.12").exists() {
        bail!("wheel: pip uninstall leaves files behind");
    }
    Ok(trial.passed)
}

/// Installs packages in a fresh Debian of this suite and runs programs there. Needs root. Returns the number of steps.
pub fn chroot(suite: &str, made: &[PathBuf]) -> Result<usize> {
    packages::install(&["debootstrap"])?;
    let root = paths::target().join("packages").join(format!("chroot-{suite}"));
    paths::remove(&root)?;
    let mut trial = Trial::new(suite)?;
    let line = apt::binary_line(suite)?;
    let mirror =
        line.split_whitespace().find(|word| word.contains("://")).context("a package source has no address")?;
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", "--include=ca-certificates,python3,python3-venv", suite]).arg(&root);
    trial.step("debootstrap", debootstrap.arg(mirror), "")?;
    let inside = |script: &str| {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
            .arg(format!("--root={}", root.display()));
        command.args(["/bin/sh", "-ec", script]).env("DEBIAN_FRONTEND", "noninteractive").env("LANG", "C.UTF-8");
        command
    };
    fs::create_dir_all(root.join("opt/packages"))?;
    for file in made {
        let name = file.file_name().context("a package has no name")?;
        fs::copy(file, root.join("opt/packages").join(name))
            .with_context(|| format!("cannot copy {}", file.display()))?;
    }
    fs::write(root.join("opt/hello.c"), PROGRAM)?;
    if let Ok(pip) = fs::read("/etc/pip.conf") {
        fs::write(root.join("etc/pip.conf"), pip)?;
    }
    let apt = format!(
        "apt-get -q update && apt-get -q install -y --no-install-recommends /opt/packages/ntbring*_{VERSION}_*.deb"
    );
    trial.step("apt install", &mut inside(&apt), "")?;
    trial.step("mpicc", &mut inside("mpicc /opt/hello.c -o /opt/hello"), "")?;
    trial.step("mpiexec", &mut inside("mpiexec -launcher fork -hosts h0:2,h1:2 -n 4 /opt/hello"), EXPECTED)?;
    trial.step("ntbring run", &mut inside("ntbring run -H 4 /opt/hello"), EXPECTED)?;
    trial.step("apt remove", &mut inside("apt-get -q remove -y ntbring ntbring-dev && ! command -v mpiexec"), "")?;
    if made.iter().any(|file| file.extension().is_some_and(|e| e == "whl")) {
        let wheel = "python3 -m venv /opt/env && /opt/env/bin/pip install /opt/packages/*.whl mpi4py";
        trial.step("pip install", &mut inside(wheel), "Successfully installed")?;
        let ring = "/opt/env/bin/mpiexec -n 4 /opt/env/bin/python -m mpi4py.bench ringtest";
        trial.step("mpi4py", &mut inside(ring), "time for")?;
    }
    paths::remove(&root)?;
    Ok(trial.passed)
}
