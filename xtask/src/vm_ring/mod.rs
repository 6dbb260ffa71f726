//! `cargo xtask vm-ring`: MPI programs on a ring of virtual machines, whose only connection for data are modelled NTB
//! adapters.
//!
//! Each machine has a kernel of its own, an IOMMU, and two adapters, which the agent `ntbringd` drives through VFIO.
//! Ranks run as an ordinary user. Usually QEMU emulates the processors, so times say nothing about hardware.
//!
//! | file | holds |
//! |---|---|
//! | `packages`, `images`, `ntb_modules`, `tools` | what is fetched and built |
//! | `accel`, `machine`, `console` | one machine, and commands in it |
//! | `models`, `ring`, `launchers` | the adapters' models; a ring of machines, and jobs on it |
//! | `programs`, `suite`, `foreign`, `peer_linux`, `faults`, `checks` | what is run |

mod accel;
mod checks;
mod console;
mod faults;
mod foreign;
mod images;
mod launchers;
mod machine;
mod models;
mod ntb_modules;
mod packages;
mod peer_linux;
mod programs;
mod ring;
mod suite;
mod tools;

use std::env;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{bail, Result};
use clap::{Args, ValueEnum};

use crate::mpich_test::Elsewhere;
use crate::setup::{self, SetupArgs};
use crate::ui::{self, Tally};
use crate::{mpi_programs, paths, process, shmem_test};
use accel::Accel;
use faults::Fault;
use launchers::Launcher;
use programs::Selection;
use ring::Setting;

/// The driver at the ends of the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Peer {
    /// Linux's: at both ends, and against ntbring's
    Linux,
}

/// Command-line options.
#[derive(Args, Clone, Debug)]
pub struct VmRingArgs {
    /// Programs of tests/mpi, by name [default: the demo]
    #[arg(value_name = "PROGRAM")]
    programs: Vec<String>,

    /// Number of virtual machines
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=5))]
    guests: u8,

    /// Ranks on each machine
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=4))]
    ranks: u8,

    /// Kind of chip of the adapters
    #[arg(long, default_value = "skx")]
    chip: String,

    /// Execution of the machines' instructions
    #[arg(long, value_enum, default_value_t = Accel::Tcg)]
    accel: Accel,

    /// The programs are OpenSHMEM programs, of tests/shmem
    #[arg(long, requires = "programs")]
    shmem: bool,

    /// Run all programs of tests/mpi that fit
    #[arg(long)]
    mpi_test: bool,

    /// Run those tests of MPICH's suite that match and that CI runs, such as pt2pt
    #[arg(long, value_name = "DIR")]
    mpich_test: Vec<String>,

    /// Run NetPIPE, as Debian has built it
    #[arg(long)]
    netpipe: bool,

    /// Run a Python job with mpi4py
    #[arg(long)]
    python: bool,

    /// Launcher of the jobs
    #[arg(long, value_enum, default_value_t)]
    launcher: Launcher,

    /// Run each program on these machines only, such as 0,2; given twice, two jobs run at once
    #[arg(long, value_name = "GUEST,...", value_parser = hosts)]
    job: Vec<Hosts>,

    /// Test against the drivers of another system instead of running programs
    #[arg(long, value_enum)]
    peer: Option<Peer>,

    /// Run scenarios in which something fails, instead of programs
    #[arg(long, value_enum)]
    fault: Vec<Fault>,

    /// Longest time for one program, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    limit: u64,

    /// Longest time for all programs of --mpi-test or --mpich-test, seconds; the rest is left out
    #[arg(long, value_name = "SECONDS", default_value_t = 540)]
    budget: u64,

    #[command(flatten)]
    setup: SetupArgs,
}

/// The machines of a job. A type of its own, since clap takes a `Vec` for several arguments.
#[derive(Clone, Debug)]
struct Hosts(Vec<u32>);

fn hosts(text: &str) -> Result<Hosts, String> {
    let numbers = text.split(',').map(|number| number.parse().map_err(|_| format!("{number:?} is no machine")));
    numbers.collect::<Result<_, _>>().map(Hosts)
}

/// Longest time that the step of `cargo xtask test` takes.
const STEP_LIMIT: Duration = Duration::from_secs(180);

/// Boots the machines, runs what was asked for, and counts what passed.
pub fn run(args: &VmRingArgs) -> Result<Tally> {
    let tools = tools::build()?;
    let images = images::ensure()?;
    let accel = args.accel.decided(&images)?;
    let (launcher, chip) = (args.launcher, args.chip.clone());
    println!("chip {chip}; {}; windows strict: each access is judged by the model", accel.name());
    let (tools, images, nothing) = (&tools, &images, PathBuf::new);
    if args.peer == Some(Peer::Linux) {
        let setting = Setting { images, tools, over: None, launcher, mpi: nothing(), programs: nothing(), chip, accel };
        return peer_linux::run(&setting, &ntb_modules::ensure(images)?);
    }
    let installed = setup::ensure(&args.setup)?;
    let programs = match args.shmem {
        true => shmem_test::build(&installed)?,
        false => mpi_programs::build(&installed)?,
    };
    let needs_more = args.launcher.is_fetched() || args.netpipe;
    let over = needs_more.then(images::guest_programs).transpose()?;
    let mpi = installed.mpi.prefix().to_path_buf();
    run_jobs(args, &Setting { images, tools, over, launcher, mpi, programs, chip, accel })
}

fn run_jobs(args: &VmRingArgs, setting: &Setting) -> Result<Tally> {
    let (guests, limit) = (u32::from(args.guests), Duration::from_secs(args.limit));
    let budget = Duration::from_secs(args.budget);
    if !args.fault.is_empty() {
        return args.fault.iter().try_fold(Tally::default(), |mut sum, &fault| {
            sum += faults::run(fault, setting, guests)?;
            Ok(sum)
        });
    }
    if !args.mpich_test.is_empty() {
        let tests = Elsewhere::of_ci(args.setup.clone(), &args.mpich_test)?;
        return suite::run(setting, &tests, guests, budget);
    }
    if args.netpipe || args.python {
        let python = args.python.then(|| crate::foreign::python_with_mpi4py(&args.setup)).transpose()?;
        let ring = setting.ring(guests)?;
        let mut tally = Tally::default();
        if args.netpipe {
            tally += foreign::netpipe(&ring, limit)?;
        }
        if let Some(python) = python {
            tally += foreign::python(&ring, &python, limit)?;
        }
        return Ok(tally);
    }
    if let Some(wrong) = args.job.iter().flat_map(|hosts| &hosts.0).find(|&&host| host >= guests) {
        bail!("--job: there is no machine {wrong}; there are 0 to {}", guests - 1);
    }
    let jobs: Vec<Vec<u32>> = args.job.iter().map(|hosts| hosts.0.clone()).collect();
    let selection =
        Selection { named: &args.programs, all: args.mpi_test, ranks: args.ranks.into(), jobs: &jobs, limit, budget };
    programs::run(setting, &selection, guests)
}

/// Runs one MPI program on a ring of 2 machines, in a process that is ended if that takes more than three minutes: then,
/// or if QEMU cannot be had, it is left out.
pub fn smallest() -> Result<Tally> {
    let log = paths::target().join("vm/step.log");
    if let Err(why) = images::ensure() {
        println!("  left out: {why:#}");
        return Ok(Tally::default());
    }
    let mut command = Command::new(env::current_exe()?);
    command.args(["vm-ring", "--guests", "2", "--limit", "60", "any_source"]);
    let outcome = process::run_captured(&mut command, &log, Some(STEP_LIMIT))?;
    if outcome.timed_out {
        println!("  left out: it takes more than {} here", ui::seconds(STEP_LIMIT));
        return Ok(Tally::default());
    }
    print!("{}", std::fs::read_to_string(&log)?);
    Ok(match outcome.success() {
        true => Tally { passed: 1, failed: 0 },
        false => {
            ui::failed("vm-ring --guests 2 any_source");
            Tally { passed: 0, failed: 1 }
        }
    })
}
