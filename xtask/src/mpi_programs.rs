//! `cargo xtask mpi-test`: runs the MPI programs of `tests/mpi`, each on the rings that `programs.toml` lists for it.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{bail, Context, Result};
use clap::Args;
use serde::Deserialize;

use crate::mpi::Layout;
use crate::namespaces::Namespaces;
use crate::process::{self, Outcome};
use crate::setup::{self, Installed, SetupArgs};
use crate::ui::{self, Tally};
use crate::variants::{Variant, VariantArgs};
use crate::{lock, parallel, paths};

/// Command-line options.
#[derive(Args, Clone, Debug)]
pub struct MpiTestArgs {
    /// Run only these programs
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,

    /// Run only this layout: hosts x ranks of a host, as in 4x2
    #[arg(long, value_name = "HxP")]
    layout: Option<String>,

    /// Give each host its own PID, mount, IPC and user namespaces: hosts share only the files of their windows
    #[arg(long)]
    namespaces: bool,

    /// Programs to run at once, except those that measure
    #[arg(long, value_name = "J", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    jobs: u8,

    #[command(flatten)]
    variants: VariantArgs,

    #[command(flatten)]
    setup: SetupArgs,
}

/// The list of programs, `tests/mpi/programs.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Programs {
    program: Vec<Program>,
}

/// One program and the layouts on which it is run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Name of the executable.
    pub name: String,
    /// Numbers of hosts, with one rank each.
    #[serde(default)]
    hosts: Vec<usize>,
    /// Pairs of a number of hosts and a number of ranks on each.
    #[serde(default)]
    per_host: Vec<[usize; 2]>,
    /// Time limit in seconds.
    #[serde(default = "default_timeout")]
    timeout: u64,
    /// Arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The program measures or needs much memory: no other program runs at the same time.
    #[serde(default)]
    alone: bool,
    /// The program starts or connects to other jobs, for which all hosts must be on one machine.
    #[serde(default)]
    pub one_machine: bool,
}

fn default_timeout() -> u64 {
    60
}

impl Program {
    /// Returns the program's name, variables and arguments, as shown in the output.
    pub fn call(&self) -> String {
        let mut call = vec![self.name.clone()];
        call.extend(self.env.iter().map(|(name, value)| format!("{name}={value}")));
        call.extend(self.args.iter().cloned());
        call.join(" ")
    }

    /// Returns true if one of its layouts has so many hosts and ranks on each.
    pub fn runs_on(&self, hosts: usize, ranks: usize) -> bool {
        match ranks {
            1 => self.hosts.contains(&hosts),
            _ => self.per_host.contains(&[hosts, ranks]),
        }
    }

    fn layouts(&self) -> Vec<Layout> {
        let single = self.hosts.iter().map(|hosts| [*hosts, 1]);
        single
            .chain(self.per_host.iter().copied())
            .map(|[hosts, per_host]| Layout::spread(hosts * per_host, hosts))
            .collect()
    }
}

/// Returns all programs.
pub fn list() -> Result<Vec<Program>> {
    Ok(Programs::read(&[])?.program)
}

/// Builds the programs against the installed MPI and returns the directory of the executables.
pub fn build(installed: &Installed) -> Result<PathBuf> {
    let dir = paths::mpi_programs();
    if !dir.join("Cargo.toml").exists() {
        bail!("{} holds no crate", paths::shown(&dir));
    }
    let log = paths::logs().join("mpi-programs.log");
    paths::remove(&log)?;
    let mut command = cargo(installed, "build");
    command.arg("--release");
    let release = target().join("release");
    if release.join("demo").exists() {
        process::check_logged(&mut command, &log)?;
    } else {
        ui::step("build: the MPI programs of tests/mpi", || process::check_logged(&mut command, &log))?;
    }
    Ok(release)
}

/// Returns a call of cargo for the crate of these programs.
pub fn cargo(installed: &Installed, verb: &str) -> Command {
    let mut command = Command::new("cargo");
    environment(installed, &mut command);
    command
        .arg(verb)
        .arg("--manifest-path")
        .arg(paths::mpi_programs().join("Cargo.toml"))
        .arg("--target-dir")
        .arg(target())
        .current_dir(paths::mpi_programs());
    command
}

/// Sets the environment in which the crate `mpi` is built with the installed mpicc and finds the installed libmpi at
/// run time.
pub fn environment(installed: &Installed, command: &mut Command) {
    let prefix = installed.mpi.prefix();
    let mut path = prefix.join("bin").into_os_string();
    if let Some(rest) = env::var_os("PATH") {
        path.push(":");
        path.push(rest);
    }
    let mut flags = env::var("RUSTFLAGS").unwrap_or_default();
    flags.push_str(&format!(" -Clink-arg=-Wl,-rpath,{}/lib", prefix.display()));
    command.env("MPICC", installed.mpi.mpicc()).env("PATH", path).env("RUSTFLAGS", flags.trim());
}

/// Returns the build directory. The flags above differ between profiles, so cargo builds anew when the profile changes.
fn target() -> PathBuf {
    paths::target().join("mpi-tests")
}

/// Runs the command: set-up, build, tests.
pub fn run(args: &MpiTestArgs) -> Result<Tally> {
    let list = Programs::read(&args.only)?;
    let installed = setup::ensure(&args.setup)?;
    let namespaces = if args.namespaces { Namespaces::new()? } else { None };
    if args.namespaces && namespaces.is_none() {
        println!("  this system does not permit user namespaces: left out");
        return Ok(Tally::default());
    }
    let jobs = args.jobs.into();
    let selection = Selection { layout: args.layout.as_deref(), namespaces: namespaces.as_ref(), jobs };
    args.variants.each(|variant| run_list(&installed, &list, &selection, variant))
}

/// The conditions under which programs are run.
#[derive(Default)]
struct Selection<'a> {
    /// The only layout to run, if one was given.
    layout: Option<&'a str>,
    namespaces: Option<&'a Namespaces>,
    /// Number of programs to run at once, at least 1.
    jobs: usize,
}

/// Number of programs to run at once in CI: often one waits while another computes.
const CI_JOBS: usize = 2;

/// Programs that show whether hosts depend on anything but their links.
const APART: &[&str] =
    &["demo", "any_source", "random_traffic", "small_collectives", "ring_collectives", "window_operations", "dynamic"];

/// Runs all programs on all their layouts and counts the results.
pub fn run_all(installed: &Installed, variants: &VariantArgs) -> Result<Tally> {
    let (list, selection) = (Programs::read(&[])?, Selection { jobs: CI_JOBS, ..Selection::default() });
    variants.each(|variant| run_list(installed, &list, &selection, variant))
}

/// Runs the programs of [`APART`] with `NTBRING_SHORTCUTS=none`, so that emulated hosts behave as separate machines do.
pub fn run_without_shortcuts(installed: &Installed) -> Result<Tally> {
    let only: Vec<String> = APART.iter().map(ToString::to_string).collect();
    let variants = VariantArgs::of(vec![("NTBRING_SHORTCUTS".into(), "none".into())]);
    let (list, selection) = (Programs::read(&only)?, Selection { jobs: CI_JOBS, ..Selection::default() });
    variants.each(|variant| run_list(installed, &list, &selection, variant))
}

/// Runs programs with each host in its own namespaces: those of [`APART`], or with `all` every program that
/// does not look at the files of other hosts' processes.
pub fn run_in_namespaces(installed: &Installed, all: bool) -> Result<Tally> {
    let only: Vec<String> = APART.iter().filter(|_| !all).map(ToString::to_string).collect();
    let Some(namespaces) = Namespaces::new()? else {
        println!("  this system does not permit user namespaces: left out");
        return Ok(Tally::default());
    };
    let selection = Selection { namespaces: Some(&namespaces), jobs: CI_JOBS, ..Selection::default() };
    run_list(installed, &Programs::read(&only)?, &selection, &Variant::default())
}

impl Programs {
    /// Reads the list; if `only` is not empty, keeps the programs that it names.
    fn read(only: &[String]) -> Result<Self> {
        let file = paths::mpi_programs().join("programs.toml");
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", paths::shown(&file)))?;
        let mut list: Self =
            toml::from_str(&text).with_context(|| format!("cannot understand {}", paths::shown(&file)))?;
        for name in only {
            if !list.program.iter().any(|program| program.name == *name) {
                let mut names: Vec<&str> = list.program.iter().map(|program| program.name.as_str()).collect();
                names.dedup();
                bail!("there is no program \"{name}\"; there are: {}", names.join(", "));
            }
        }
        list.program.retain(|program| only.is_empty() || only.contains(&program.name));
        Ok(list)
    }
}

fn run_list(installed: &Installed, list: &Programs, selection: &Selection, variant: &Variant) -> Result<Tally> {
    let binaries = build(installed)?;
    let place = paths::target().join("mpi-test");
    let logs = place.join(variant.place("logs"));
    let _lock = lock::take(&place.join("lock"))?;
    paths::remove(&logs)?;
    let run = |index: usize, program: &Program| {
        let place = logs.join(format!("{index:02}-{}", program.name));
        run_program(installed, &binaries, program, (selection, variant), &place)
    };
    let tallies = parallel::run_all(&list.program, selection.jobs, |program| program.alone, run)?;
    let mut tally: Tally = tallies.into_iter().sum();
    let left = selection.namespaces.map_or(Ok(0), Namespaces::sweep)?;
    if left > 0 {
        ui::failed(format!("{left} window files are left behind"));
        tally.failed += 1;
    }
    Ok(tally)
}

/// Runs one program on all its layouts and prints one line about it. The log of a layout is `place-LAYOUT.log`.
fn run_program(
    installed: &Installed,
    binaries: &Path,
    program: &Program,
    (selection, variant): (&Selection, &Variant),
    place: &Path,
) -> Result<Tally> {
    let mut passed = Vec::new();
    let mut failures = Vec::new();
    let mut elapsed = Duration::ZERO;
    for layout in program.layouts() {
        let on = layout.describe();
        let is_left_out = program.one_machine && selection.namespaces.is_some();
        if is_left_out || selection.layout.is_some_and(|only| only != on) {
            continue;
        }
        let log = PathBuf::from(format!("{}-{on}.log", place.display()));
        let mut command = match selection.namespaces {
            None => installed.mpi.run(&layout, &[]),
            Some(namespaces) => installed.mpi.launched(&namespaces.options(), &layout, &[]),
        };
        command.arg(binaries.join(&program.name)).args(&program.args);
        command.envs(selection.namespaces.iter().flat_map(|namespaces| namespaces.env()));
        command.envs(variant.env.iter().cloned()).envs(&program.env);
        let outcome =
            process::run_captured(&mut command, &log, Some(variant.limit(Duration::from_secs(program.timeout))))?;
        elapsed += outcome.elapsed;
        match complaint(&outcome, &String::from_utf8_lossy(&fs::read(&log)?), &program.name) {
            None => passed.push(on),
            Some(why) => {
                let what = format!("    FAILED on {on}: {why}\n  {}", process::shown(&command));
                failures.push(ui::error_with_log(what, &log).to_string());
                ui::failed(format!("{} on {on}: {why}", program.call()));
            }
        }
    }
    let tally = Tally { passed: passed.len(), failed: failures.len() };
    if tally != Tally::default() {
        let line = format!("  {:<34} {:<32} {:>10}", program.call(), passed.join(" "), ui::seconds(elapsed));
        // A single call, so that the lines of programs that run at the same time do not mix.
        println!("{}", [vec![line], failures].concat().join("\n"));
    }
    ui::flush();
    Ok(tally)
}

/// Returns the reason for which a run has failed; None if it ended with status 0 and printed its `ok` line.
fn complaint(outcome: &Outcome, output: &str, name: &str) -> Option<String> {
    if let Some(line) = output.lines().find(|line| line.contains("FAIL")) {
        return Some(line.to_string());
    }
    if !outcome.success() {
        return Some(outcome.describe());
    }
    let said = output.lines().any(|line| line.trim() == format!("ok {name}"));
    (!said).then(|| format!("it did not print \"ok {name}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read() {
        let list: Programs = toml::from_str(
            "[[program]]\nname = \"ring\"\nhosts = [2, 3]\nper_host = [[4, 2]]\nargs = [\"-x\"]\n\
             env = { NTBRING_PORT = \"weak\" }\n[[program]]\nname = \"other\"\ntimeout = 5\n",
        )
        .unwrap();
        let layouts: Vec<String> = list.program[0].layouts().iter().map(Layout::describe).collect();
        assert_eq!(layouts, ["2x1", "3x1", "4x2"]);
        assert_eq!((list.program[0].timeout, list.program[1].timeout), (60, 5));
        assert!(toml::from_str::<Programs>("[[program]]\nname = \"x\"\nhots = [2]\n").is_err());
    }
}
