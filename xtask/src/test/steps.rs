//! The steps of `cargo xtask test`, in one table.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{bail, Result};

use super::{libtest, linters};
use crate::foreign::{self, ForeignArgs};
use crate::mpich_test::{self, MpichTestArgs};
use crate::setup::{packages, remove, Installed, SetupArgs};
use crate::ui::{self, Tally};
use crate::{mpi_programs, paths, process};

/// What all steps have in common.
pub struct Context {
    /// The MPI to test with.
    pub installed: Installed,
    /// How it was asked for.
    pub setup: SetupArgs,
}

/// One step.
pub struct Step {
    /// What `--only` takes.
    pub name: &'static str,
    /// What it does.
    pub what: &'static str,
    /// Does it.
    pub work: fn(&Context) -> Result<Tally>,
}

/// All of them: what fails soonest comes first.
pub const STEPS: &[Step] = &[
    Step { name: "rustfmt", what: "the sources are formatted", work: rustfmt },
    Step { name: "clippy", what: "no warnings, in the workspace and in tests/mpi", work: clippy },
    Step { name: "cargo-test", what: "unit and integration tests", work: cargo_test },
    Step { name: "loom", what: "the queues under all interleavings", work: loom },
    Step { name: "jobs", what: "whole jobs: bad input, death, paths, waiting", work: jobs },
    Step { name: "mpi-test", what: "the MPI programs of tests/mpi", work: mpi_test },
    Step { name: "foreign-test", what: "programs that were not written for ntbring", work: foreign_programs },
    Step { name: "mpich-test", what: "the part of MPICH's own suite that CI runs", work: mpich_suite },
];

/// A misspelt step would be a test that is silently not run.
pub fn check_names(only: &[String]) -> Result<()> {
    for name in only {
        if !STEPS.iter().any(|step| step.name == name) {
            let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
            bail!("there is no step \"{name}\"; there are: {}", names.join(", "));
        }
    }
    Ok(())
}

fn rustfmt(_: &Context) -> Result<Tally> {
    if !linters::available("rustfmt", &fresh_log("rustfmt")?)? {
        return Ok(Tally::default());
    }
    let mut tally = one("rustfmt", cargo().args(["fmt", "--all", "--", "--check"]))?;
    let mut programs = cargo();
    programs.args(["fmt", "--manifest-path"]).arg(paths::mpi_programs().join("Cargo.toml")).args(["--", "--check"]);
    tally += one("rustfmt", &mut programs)?;
    Ok(tally)
}

fn clippy(context: &Context) -> Result<Tally> {
    const REST: &[&str] = &["--all-targets", "--", "-D", "warnings"];
    if !linters::available("clippy", &fresh_log("clippy")?)? {
        return Ok(Tally::default());
    }
    let mut workspace = cargo();
    workspace.args(["clippy", "--workspace"]).arg("--target-dir").arg(paths::target());
    let mut tally = one("clippy", workspace.args(REST))?;
    tally += one("clippy", mpi_programs::cargo(&context.installed, "clippy").args(REST))?;
    Ok(tally)
}

fn cargo_test(_: &Context) -> Result<Tally> {
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-fail-fast", "--target-dir"]).arg(paths::target());
    counted("cargo-test", &mut command)
}

fn jobs(context: &Context) -> Result<Tally> {
    if rustix::process::geteuid().is_root() {
        // One job has a debugger attached, if there is one.
        packages::install(&["gdb"])?;
    }
    mpi_programs::build(&context.installed)?;
    let mut command = cargo();
    // One at a time: some of them measure what a job uses.
    command
        .args(["test", "--package", "ntbring", "--no-fail-fast", "--test", "jobs", "--target-dir"])
        .arg(paths::target())
        .args(["--", "--ignored", "--test-threads=1"]);
    counted("jobs", &mut command)
}

fn loom(_: &Context) -> Result<Tally> {
    let mut command = cargo();
    command
        .args(["test", "--release", "--lib", "--package", "ntbring", "--package", "ntbring-queue", "--target-dir"])
        .arg(paths::target().join("loom"))
        .env("RUSTFLAGS", "--cfg loom")
        // Only the tests that loom runs are built with this flag, and soon over: build them quickly.
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    counted("loom", &mut command)
}

fn mpi_test(context: &Context) -> Result<Tally> {
    mpi_programs::run_all(&context.installed)
}

fn foreign_programs(context: &Context) -> Result<Tally> {
    foreign::run(&ForeignArgs::ci(context.setup.clone()))
}

fn mpich_suite(context: &Context) -> Result<Tally> {
    mpich_test::run(&MpichTestArgs::ci(context.setup.clone()))
}

fn cargo() -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(paths::root());
    command
}

fn fresh_log(step: &str) -> Result<PathBuf> {
    let log = paths::target().join(format!("test-{step}.log"));
    remove(&log)?;
    Ok(log)
}

/// A command that is one test: it passes if it succeeds.
fn one(step: &str, command: &mut Command) -> Result<Tally> {
    let log = paths::target().join(format!("test-{step}.log"));
    let outcome = process::run_logged(command, &log, None)?;
    if outcome.success() {
        return Ok(Tally { passed: 1, failed: 0 });
    }
    let what = format!("{}: {}", process::shown(command), outcome.describe());
    println!("{}", ui::error_with_log(what, &log));
    ui::failed(process::shown(command));
    Ok(Tally { passed: 0, failed: 1 })
}

/// A call of `cargo test`, whose tests count one by one.
fn counted(step: &str, command: &mut Command) -> Result<Tally> {
    let log = fresh_log(step)?;
    let outcome = process::run_captured(command, &log, None)?;
    let text = fs::read(&log)?;
    let text = String::from_utf8_lossy(&text);
    let mut tally = libtest::count(&text);
    libtest::failures(&text).for_each(|name| ui::failed(format!("{step}: {name}")));
    // It did not compile, or a test binary crashed: there is no line to count then.
    if !outcome.success() && tally.failed == 0 {
        tally.failed = 1;
        ui::failed(process::shown(command));
    }
    if tally.failed > 0 {
        let what = format!("{}: {}", process::shown(command), outcome.describe());
        println!("{}", ui::error_with_log(what, &log));
    }
    if outcome.success() && tally == Tally::default() {
        bail!("{}: no test was run", process::shown(command));
    }
    Ok(tally)
}
