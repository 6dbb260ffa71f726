//! `bench shmem-paper`: the experiments of the paper on OpenSHMEM over a switchless NTB ring (Lim and Cha 2022).
//!
//! Puts and gets run under the link model `gen3x8`, between two hosts on two cores. Where more links are busy at once,
//! their bandwidth is scaled down, so that all of them together carry at most a quarter of what two cores can copy, and
//! that a put takes longer on a link than on a core: the experiment then measures links and not cores.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{bail, Context, Result};

use super::libraries::{Budget, Library, Runner};
use super::rows::{Group, Program};
use super::sizes::{opposite, pair, ring, HOSTS, OF_THREADS, RAW, SCALED, SIZES, TURNS, UNDER_MODEL};
use super::verdict::{self, Scaled};
use crate::bench::compile;
use crate::bench::disturbance::Watch;
use crate::bench::figures::Figures;
use crate::bench::machine::{self, Machine};
use crate::mpi::Mpi;
use crate::{paths, process, ui};

/// The link model of the first experiment.
const MODEL: &str = "gen3x8";
const LINK_MODEL: &str = "NTBRING_LINK_MODEL";
const THREADS: &str = "NTBRING_FORWARDER_THREADS";

/// Size at which the bandwidth of copies is measured.
const COPY_BYTES: u64 = 1 << 20;
/// Largest message of the program that measures the raw link.
const RAW_MOST: u64 = 1 << 20;

/// Runs all experiments and shows and stores the tables.
pub fn run(mpi: &Mpi, rounds: usize, budget: Budget) -> Result<()> {
    let cores = machine::cores();
    if cores.len() < 2 {
        bail!("the experiments need two cores");
    }
    let mut machine = machine::describe(&cores);
    let bench = paths::target().join("bench");
    let mut runner = Runner::new(bench.join("shmem"), cores, budget)?;
    let ours = Library::ours(mpi);
    ui::step("compiling the benchmarks", || compile(&ours, &runner.dir))?;
    println!("\n{}", machine::shown(&machine, &[]));
    machine::warn(&machine);

    let watch = Watch::start();
    for round in 0..rounds {
        ui::step(&format!("copies of two cores: round {} of {rounds}", round + 1), || copies(&mut runner))?;
    }
    let copied = runner.figures.median("raw_bandwidth", 2, COPY_BYTES, RAW).context("no figure of copies")?;
    let scaled = Scaled::of(copied);
    let mut step = |name: &str, run: &mut dyn FnMut(&mut Runner) -> Result<()>| -> Result<()> {
        for round in 0..rounds {
            ui::step(&format!("{name}: round {} of {rounds}", round + 1), || run(&mut runner))?;
        }
        Ok(())
    };
    step("puts and gets under gen3x8", &mut |runner| {
        raw_link(runner)?;
        runner.run(&ours, &pair(), UNDER_MODEL, &[(LINK_MODEL, MODEL)])
    })?;
    let turns = |runner: &mut Runner, group: &Group, name: &str, threads: Option<usize>| {
        TURNS.iter().try_for_each(|(row, bytes)| {
            let (model, threads) = (scaled.model(*bytes), threads.map(|threads| threads.to_string()));
            let mut env = vec![(LINK_MODEL, model.as_str())];
            env.extend(threads.as_deref().map(|threads| (THREADS, threads)));
            runner.run(&ours, &Group { rows: vec![row], ..group.clone() }, name, &env)
        })
    };
    step("turn-around of 3, 4, 5 hosts", &mut |runner| {
        HOSTS.iter().try_for_each(|hosts| turns(runner, &ring(*hosts), SCALED, None))
    })?;
    step("1, 2, 4 transfer threads", &mut |runner| {
        OF_THREADS.iter().try_for_each(|(threads, name)| {
            turns(runner, &ring(HOSTS[0]), name, Some(*threads))?;
            turns(runner, &opposite(), name, Some(*threads))
        })
    })?;
    if let Some(disturbance) = watch.end() {
        machine.lines.push(("while measuring".to_string(), disturbance.describe()));
        machine.warnings.extend(disturbance.warning());
    }
    conclude(&machine, &runner, &verdict::text(&runner.figures, &scaled, rounds))
}

/// Shows and stores the result.
fn conclude(machine: &Machine, runner: &Runner, tables: &str) -> Result<()> {
    let mut text = format!("{}\n{tables}", machine::shown(machine, &[]));
    for line in runner.failures.values() {
        text.push_str(&format!("{line}\n"));
    }
    for warning in &machine.warnings {
        text.push_str(&format!("WARNING: {warning}\n"));
    }
    println!("\n{text}");
    let file = paths::target().join("bench/shmem-paper.txt");
    fs::write(&file, &text).with_context(|| format!("cannot write {}", file.display()))?;
    println!("this text: {}", paths::shown(&file));
    if runner.ours_failed {
        bail!("ntbring's OpenSHMEM failed an experiment: see above");
    }
    Ok(())
}

fn compile(ours: &Library, dir: &Path) -> Result<()> {
    [Program::Pair, Program::Ring].iter().try_for_each(|program| ours.compile(*program, dir))?;
    let log = dir.join("compile.log");
    compile::compile(Path::new("cc"), &["machine/limits.c", "mpi/common.c"], &dir.join("limits"), &log)?;
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "--package", "ntbring-papers", "--manifest-path"]);
    command.arg(paths::root().join("Cargo.toml")).arg("--target-dir").arg(paths::target());
    process::check_logged(&mut command, &log)
}

/// Runs a program of two processes without MPI and adds its figures.
fn two_processes(runner: &mut Runner, mut command: Command, tests: &[String]) -> Result<()> {
    let cores: Vec<String> = runner.cores.iter().map(ToString::to_string).collect();
    command.args(["--cores", &cores[..2].join(","), "--budget", &runner.budget.row.to_string()]).args(tests);
    let out = runner.dir.join("raw.out");
    let outcome = process::run_captured(&mut command, &out, Some(Duration::from_secs(120)))?;
    if !outcome.success() {
        bail!("{}: {}: {}", process::shown(&command), outcome.describe(), ui::tail(&out));
    }
    let figures: &mut Figures = &mut runner.figures;
    figures.add(RAW, 2, &fs::read_to_string(&out)?);
    Ok(())
}

/// Measures how fast one core copies into a window while another one copies out of it.
fn copies(runner: &mut Runner) -> Result<()> {
    let command = Command::new(runner.dir.join("limits"));
    two_processes(runner, command, &[format!("raw_bandwidth={COPY_BYTES}")])
}

/// Measures the raw link: messages through its window, without any library (`benches/papers`).
fn raw_link(runner: &mut Runner) -> Result<()> {
    let mut command = Command::new(paths::target().join("release/ntbring-papers"));
    command.args(["--model", "5", "--link-model", MODEL]);
    let sizes: Vec<String> =
        SIZES.iter().filter(|(_, bytes)| *bytes <= RAW_MOST).map(|(_, bytes)| bytes.to_string()).collect();
    two_processes(runner, command, &[format!("bandwidth={}", sizes.join(","))])
}
