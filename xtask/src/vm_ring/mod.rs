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
//! | `models`, `ring` | the adapters' models; a ring of machines, and jobs on it |
//! | `programs`, `peer_linux`, `faults`, `checks` | what is run |

mod accel;
mod checks;
mod console;
mod faults;
mod images;
mod machine;
mod models;
mod ntb_modules;
mod packages;
mod peer_linux;
mod programs;
mod ring;
mod tools;

use std::time::Duration;

use anyhow::{bail, Result};
use clap::{Args, ValueEnum};

use crate::mpi_programs;
use crate::setup::{self, Installed, SetupArgs};
use crate::ui::Tally;
use accel::Accel;
use faults::Fault;
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

    /// Run all programs of tests/mpi that fit
    #[arg(long)]
    mpi_test: bool,

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

/// Boots the machines, runs what was asked for, and counts what passed.
pub fn run(args: &VmRingArgs) -> Result<Tally> {
    let installed = setup::ensure(&args.setup)?;
    let programs = mpi_programs::build(&installed)?;
    let tools = tools::build()?;
    let images = images::ensure()?;
    let accel = args.accel.decided(&images)?;
    let mpiexec = installed.mpi.wrapper("mpiexec");
    let setting = Setting { images: &images, tools: &tools, mpiexec, programs, chip: args.chip.clone(), accel };
    let guests = u32::from(args.guests);
    println!("chip {}; {}; windows strict: each access is judged by the model", setting.chip, accel.name());
    if args.peer == Some(Peer::Linux) {
        return peer_linux::run(&setting, &ntb_modules::ensure(&images)?);
    }
    if !args.fault.is_empty() {
        return args.fault.iter().try_fold(Tally::default(), |mut sum, &fault| {
            sum += faults::run(fault, &setting, guests)?;
            Ok(sum)
        });
    }
    if let Some(wrong) = args.job.iter().flat_map(|hosts| &hosts.0).find(|&&host| host >= guests) {
        bail!("--job: there is no machine {wrong}; there are 0 to {}", guests - 1);
    }
    let jobs: Vec<Vec<u32>> = args.job.iter().map(|hosts| hosts.0.clone()).collect();
    let selection = Selection {
        named: &args.programs,
        all: args.mpi_test,
        ranks: args.ranks.into(),
        jobs: &jobs,
        limit: Duration::from_secs(args.limit),
    };
    programs::run(&setting, &selection, guests)
}

/// Fails if QEMU or another file of the machines is not here and cannot be had.
pub fn can_run() -> Result<()> {
    images::ensure().map(|_| ())
}

/// Runs one MPI program on a ring of 2 machines.
pub fn smallest(installed: &Installed) -> Result<Tally> {
    let programs = mpi_programs::build(installed)?;
    let (tools, images) = (tools::build()?, images::ensure()?);
    let mpiexec = installed.mpi.wrapper("mpiexec");
    let setting = Setting { images: &images, tools: &tools, mpiexec, programs, chip: "skx".into(), accel: Accel::Tcg };
    let named = ["any_source".to_string()];
    let limit = Duration::from_secs(120);
    programs::run(&setting, &Selection { named: &named, all: false, ranks: 1, jobs: &[], limit }, 2)
}
