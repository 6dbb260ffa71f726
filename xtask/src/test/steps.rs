//! The steps of `cargo xtask test`, in one table.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{bail, Result};

use super::{libtest, linters};
use crate::foreign::{self, ForeignArgs};
use crate::mpich_test::{self, MpichTestArgs};
use crate::setup::{packages, Installed, SetupArgs};
use crate::ui::{self, Tally};
use crate::variants::VariantArgs;
use crate::{mpi_programs, parallel, paths, process, shmem_test, vm_ring};

/// The setting with which emulated hosts behave as separate machines do.
const NO_SHORTCUTS: (&str, &str) = ("NTBRING_SHORTCUTS", "none");

/// The parameters that all steps share.
pub struct Context {
    /// The installed MPI to test with.
    pub installed: Installed,
    /// The options with which it was set up.
    pub setup: SetupArgs,
}

/// One step of the tests.
pub struct Step {
    /// Its name for `--only`.
    pub name: &'static str,
    /// A description of its work.
    pub what: &'static str,
    /// The function that performs it.
    pub work: fn(&Context) -> Result<Tally>,
}

/// The normal steps; those that fail soonest come first.
pub const STEPS: &[Step] = &[
    Step { name: "rustfmt", what: "the sources are formatted", work: rustfmt },
    Step { name: "clippy", what: "no warnings, in the workspace and in tests/mpi", work: clippy },
    Step { name: "cargo-test", what: "unit and integration tests", work: cargo_test },
    Step { name: "loom", what: "the queues under all interleavings", work: loom },
    Step { name: "jobs", what: "whole jobs: bad input, death, paths, waiting", work: jobs },
    Step { name: "mpi-test", what: "the MPI programs of tests/mpi", work: mpi_test },
    Step { name: "shmem-test", what: "the OpenSHMEM programs of tests/shmem", work: shmem },
    Step { name: "apart", what: "hosts without shortcuts, and hosts in namespaces of their own", work: apart },
    Step { name: "foreign-test", what: "programs that were not written for ntbring", work: foreign_programs },
    Step { name: "mpich-test", what: "the part of MPICH's own suite that CI runs", work: mpich_suite },
    Step { name: "vm", what: "an MPI program on a ring of two virtual machines", work: virtual_machines },
];

/// The steps that `--full` adds, which take hours.
pub const FULL: &[Step] = &[
    Step { name: "jobs-none", what: "whole jobs on hosts without shortcuts", work: jobs_without_shortcuts },
    Step { name: "mpi-none", what: "the MPI programs on hosts without shortcuts", work: mpi_without_shortcuts },
    Step {
        name: "shmem-none",
        what: "the OpenSHMEM programs on hosts without shortcuts",
        work: shmem_without_shortcuts,
    },
    Step { name: "mpi-apart", what: "the MPI programs on hosts in namespaces of their own", work: mpi_in_namespaces },
    Step { name: "mpi-extremes", what: "the MPI programs at the extremes of the thresholds", work: mpi_extremes },
    Step {
        name: "mpich-none",
        what: "CI's part of MPICH's suite on hosts without shortcuts",
        work: mpich_without_shortcuts,
    },
    Step { name: "mpich-all", what: "MPICH's whole suite on 4 hosts", work: mpich_all },
];

/// Fails if there is no step of one of these names; otherwise a misspelt step would silently not be run.
pub fn check_names(only: &[String]) -> Result<()> {
    for name in only {
        if !STEPS.iter().chain(FULL).any(|step| step.name == name) {
            let names: Vec<&str> = STEPS.iter().chain(FULL).map(|step| step.name).collect();
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
    // Many tests wait for others most of their time.
    let threads = parallel::cores().max(4);
    let mut command = cargo();
    command
        .args(["test", "--workspace", "--no-fail-fast", "--target-dir"])
        .arg(paths::target())
        .env("RUST_TEST_THREADS", threads.to_string());
    counted("cargo-test", &mut command)
}

fn jobs(context: &Context) -> Result<Tally> {
    jobs_with(context, "jobs", &[])
}

fn jobs_without_shortcuts(context: &Context) -> Result<Tally> {
    jobs_with(context, "jobs-none", &[NO_SHORTCUTS])
}

fn jobs_with(context: &Context, step: &str, env: &[(&str, &str)]) -> Result<Tally> {
    if rustix::process::geteuid().is_root() {
        // One of the tests attaches gdb to a job, if gdb is installed.
        packages::install(&["gdb"])?;
        // Another shows a page in a browser, and is skipped without one: not every distribution has this package.
        if let Err(error) = packages::install(&["chromium-headless-shell"]) {
            println!("no browser for tests: {error:#}");
        }
    }
    mpi_programs::build(&context.installed)?;
    let run = |step: &str, which: &[&str]| {
        let mut command = cargo();
        command
            .args(["test", "--package", "ntbring", "--no-fail-fast", "--test", "jobs", "--target-dir"])
            .arg(paths::target())
            .args(["--", "--ignored"])
            .args(which)
            .envs(env.iter().copied());
        counted(step, &mut command)
    };
    // Two at a time, since most tests wait much of their time; but one at a time where they measure times.
    let mut tally = run(step, &["--test-threads=2", "--skip", "waiting::"])?;
    tally += run(&format!("{step}-waiting"), &["--test-threads=1", "waiting::"])?;
    Ok(tally)
}

fn loom(_: &Context) -> Result<Tally> {
    let mut command = cargo();
    command
        .args(["test", "--release", "--lib", "--package", "ntbring", "--package", "ntbring-queue", "--target-dir"])
        .arg(paths::target().join("loom"))
        .env("RUSTFLAGS", "--cfg loom")
        // Only the tests that loom runs are built with this flag. They are short, so they are built quickly.
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    counted("loom", &mut command)
}

fn mpi_test(context: &Context) -> Result<Tally> {
    mpi_programs::run_all(&context.installed, &VariantArgs::default())
}

fn mpi_without_shortcuts(context: &Context) -> Result<Tally> {
    mpi_programs::run_all(&context.installed, &no_shortcuts())
}

fn mpi_in_namespaces(context: &Context) -> Result<Tally> {
    mpi_programs::run_in_namespaces(&context.installed, true)
}

fn mpi_extremes(context: &Context) -> Result<Tally> {
    mpi_programs::run_all(&context.installed, &VariantArgs::all_extremes())
}

fn shmem(context: &Context) -> Result<Tally> {
    shmem_test::run_ci(&context.installed)
}

fn shmem_without_shortcuts(context: &Context) -> Result<Tally> {
    shmem_test::run_all(&context.installed, &no_shortcuts())
}

fn apart(context: &Context) -> Result<Tally> {
    let mut tally = mpi_programs::run_without_shortcuts(&context.installed)?;
    tally += mpi_programs::run_in_namespaces(&context.installed, false)?;
    Ok(tally)
}

fn foreign_programs(context: &Context) -> Result<Tally> {
    foreign::run(&ForeignArgs::ci(context.setup.clone()))
}

fn mpich_suite(context: &Context) -> Result<Tally> {
    mpich_test::run(&MpichTestArgs::ci(context.setup.clone()))
}

fn virtual_machines(_context: &Context) -> Result<Tally> {
    vm_ring::smallest()
}

fn mpich_without_shortcuts(context: &Context) -> Result<Tally> {
    mpich_test::run(&MpichTestArgs::ci(context.setup.clone()).on(&[2, 4, 5], no_shortcuts()))
}

fn mpich_all(context: &Context) -> Result<Tally> {
    mpich_test::run(&MpichTestArgs::whole(context.setup.clone(), &[4]))
}

fn no_shortcuts() -> VariantArgs {
    VariantArgs::of(vec![(NO_SHORTCUTS.0.to_string(), NO_SHORTCUTS.1.to_string())])
}

fn cargo() -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(paths::root());
    command
}

fn fresh_log(step: &str) -> Result<PathBuf> {
    let log = paths::target().join(format!("test-{step}.log"));
    paths::remove(&log)?;
    Ok(log)
}

/// Runs a command that counts as one test, which passes if the command succeeds.
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

/// Runs a call of `cargo test` and counts its tests one by one.
fn counted(step: &str, command: &mut Command) -> Result<Tally> {
    let log = fresh_log(step)?;
    let outcome = process::run_captured(command, &log, None)?;
    let text = fs::read(&log)?;
    let text = String::from_utf8_lossy(&text);
    let mut tally = libtest::count(&text);
    libtest::failures(&text).for_each(|name| ui::failed(format!("{step}: {name}")));
    // It did not compile, or a test binary crashed, so that no line reports a failure.
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
