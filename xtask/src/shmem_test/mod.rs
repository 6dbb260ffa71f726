//! `cargo xtask shmem-test`: runs the OpenSHMEM programs of `tests/shmem`, each on several rings.

mod compile;
mod generate;
mod programs;
mod symbols;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::mpi::Layout;
use crate::process;
use crate::setup::{self, Installed, SetupArgs};
use crate::ui::{self, Tally};
use crate::variants::{Variant, VariantArgs};
use crate::{lock, parallel, paths};
use programs::{Program, Programs};

/// Command-line options.
#[derive(Args, Clone, Debug)]
pub struct ShmemTestArgs {
    /// Run only these programs
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,

    /// Run only this layout: hosts x PEs of a host, as in 4x2
    #[arg(long, value_name = "HxP")]
    layout: Option<String>,

    /// Programs to run at once, except those that measure
    #[arg(long, value_name = "J", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    jobs: u8,

    /// Run a smaller selection of the programs in this way: hosts without shortcuts, the same without stores into memory of
    /// neighbours, links with the speed of a model, or messages that are sent again
    #[arg(long, value_name = "NAME", value_parser = SETTINGS.map(|(name, _)| name))]
    variant: Vec<String>,

    #[command(flatten)]
    variants: VariantArgs,

    #[command(flatten)]
    setup: SetupArgs,
}

/// Compiles all programs. Returns the directory of the executables.
pub fn build(installed: &Installed) -> Result<PathBuf> {
    compile::all(installed, &Programs::read(&[])?.program)?;
    Ok(compile::executables())
}

/// The settings for the smaller selection.
const SETTINGS: [(&str, &[(&str, &str)]); 4] = [
    ("none", &[("NTBRING_SHORTCUTS", "none")]),
    ("requests", &[("NTBRING_SHORTCUTS", "none"), ("NTBRING_DIRECT_STORES", "off")]),
    ("model", &[("NTBRING_LINK_MODEL", "gen3x8")]),
    ("retry", &[("NTBRING_RELIABILITY", "retry")]),
];

/// Number of programs to run at once in CI: often one waits while another computes.
const CI_JOBS: usize = 2;

/// Time that processes and files of a job may exist after its end.
const SWEPT: &str = "1";

/// The conditions under which programs are run.
struct Selection<'a> {
    layout: Option<&'a str>,
    jobs: usize,
    /// Only programs for all settings.
    apart: bool,
}

/// Runs the command: set-up, build, tests.
pub fn run(args: &ShmemTestArgs) -> Result<Tally> {
    let list = Programs::read(&args.only)?;
    let installed = setup::ensure(&args.setup)?;
    let apart = !args.variant.is_empty();
    let selection = Selection { layout: args.layout.as_deref(), jobs: args.jobs.into(), apart };
    if !apart {
        let mut tally = Tally::default();
        if args.only.is_empty() {
            tally += symbols::check(&installed)?;
        }
        tally += args.variants.each(|variant| run_list(&installed, &list, &selection, variant))?;
        return Ok(tally);
    }
    let chosen = SETTINGS.iter().filter(|(name, _)| args.variant.iter().any(|variant| variant == name));
    let variants = chosen.map(|&(_, setting)| with(setting));
    variants.map(|variant| variant.each(|variant| run_list(&installed, &list, &selection, variant))).sum()
}

/// Runs everything that CI runs: all programs, and the smaller selection under the other settings.
pub fn run_ci(installed: &Installed) -> Result<Tally> {
    let list = Programs::read(&[])?;
    let mut tally = symbols::check(installed)?;
    let all = Selection { layout: None, jobs: CI_JOBS, apart: false };
    tally += run_list(installed, &list, &all, &Variant::default())?;
    for (_, setting) in SETTINGS {
        let part = Selection { apart: true, ..all };
        tally += with(setting).each(|variant| run_list(installed, &list, &part, variant))?;
    }
    Ok(tally)
}

/// Runs all programs with these variables.
pub fn run_all(installed: &Installed, variants: &VariantArgs) -> Result<Tally> {
    let list = Programs::read(&[])?;
    let selection = Selection { layout: None, jobs: CI_JOBS, apart: false };
    variants.each(|variant| run_list(installed, &list, &selection, variant))
}

fn with(settings: &[(&str, &str)]) -> VariantArgs {
    VariantArgs::of(settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect())
}

fn run_list(installed: &Installed, list: &Programs, selection: &Selection, variant: &Variant) -> Result<Tally> {
    let place = paths::target().join("shmem-test");
    let _lock = lock::take(&place.join("lock"))?;
    compile::all(installed, &list.program)?;
    let logs = place.join(variant.place("logs"));
    paths::remove(&logs)?;
    let run = |index: usize, program: &Program| {
        let place = logs.join(format!("{index:02}-{}", program.name));
        run_program(installed, program, (selection, variant), &place)
    };
    let before = shared_memory();
    let chosen: Vec<&Program> = list.program.iter().filter(|program| !selection.apart || program.apart).collect();
    let is_alone = |program: &&Program| program.alone || program.swept;
    let tallies = parallel::run_all(&chosen, selection.jobs, is_alone, |index, program| run(index, program))?;
    let mut families: BTreeMap<&str, Tally> = BTreeMap::new();
    chosen.iter().zip(&tallies).for_each(|(program, tally)| *families.entry(program.family()).or_default() += *tally);
    for (family, tally) in families {
        println!("  {family:<34} {tally}");
    }
    let mut tally: Tally = tallies.into_iter().sum();
    if let Some(left) = shared_memory().difference(&before).next() {
        ui::failed(format!("{left} is left in /dev/shm"));
        tally.failed += 1;
    }
    Ok(tally)
}

/// Returns the names of files of ntbring in `/dev/shm`. Normally its files have no names.
fn shared_memory() -> BTreeSet<String> {
    let files = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    files.map(|file| file.file_name().to_string_lossy().into_owned()).filter(|name| name.contains("ntbring")).collect()
}

/// Runs one program on all its layouts and prints one line about it. The log of a layout is `place-LAYOUT.log`.
fn run_program(
    installed: &Installed,
    program: &Program,
    (selection, variant): (&Selection, &Variant),
    place: &Path,
) -> Result<Tally> {
    let mut passed = Vec::new();
    let mut failures = Vec::new();
    let mut elapsed = Duration::ZERO;
    for layout in program.layouts(selection.apart)? {
        let on = layout.describe();
        if selection.layout.is_some_and(|only| only != on) {
            continue;
        }
        let log = PathBuf::from(format!("{}-{on}.log", place.display()));
        let before = shared_memory();
        let mut command = call(installed, program, &layout);
        command.envs(variant.env.iter().cloned()).envs(&program.env);
        let outcome = process::run_captured(&mut command, &log, Some(variant.limit(program.limit())))?;
        elapsed += outcome.elapsed;
        let left = shared_memory().difference(&before).next().filter(|_| program.swept).cloned();
        let complaint = program.complaint(&outcome, &String::from_utf8_lossy(&fs::read(&log)?));
        match complaint.or(left.map(|file| format!("{file} is left in /dev/shm"))) {
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

/// Returns the call of a program. After a `swept` one, a line is printed for each of its processes that still exists.
fn call(installed: &Installed, program: &Program, layout: &Layout) -> Command {
    let executable = compile::executable(program);
    let mut command = match &program.last {
        None => installed.mpi.run(layout, &[]),
        Some(_) => {
            let mut command = Command::new(installed.mpi.prefix().join("bin/mpiexec"));
            let first = (layout.ranks() - 1).to_string();
            command.args(["-launcher", "fork", "-hosts", &layout.hosts(), "-n", &first]);
            command
        }
    };
    command.arg(&executable).args(&program.args);
    if let Some(last) = &program.last {
        command.args([":", "-n", "1"]).arg(compile::executables().join(last)).args(&program.args);
    }
    if !program.swept {
        return command;
    }
    let script = "exe=$1; shift; \"$@\"; code=$?; sleep $WAIT; for p in /proc/[0-9]*; do \
                  [ \"$(readlink $p/exe)\" = \"$exe\" ] && echo \"FAIL: process ${p#/proc/} is left\"; done; exit $code";
    let mut swept = Command::new("sh");
    swept.args(["-c", script, "sh"]).arg(&executable).arg(command.get_program()).args(command.get_args());
    swept.env("WAIT", SWEPT);
    swept
}
