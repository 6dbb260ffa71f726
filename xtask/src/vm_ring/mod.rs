//! `cargo xtask vm-ring`: MPI programs on a ring of virtual machines, whose only connection for data are modelled NTB
//! adapters.
//!
//! Each machine has a kernel of its own, an IOMMU, and two adapters, which the agent `ntbringd` drives through VFIO.
//! QEMU emulates the processors, so times say nothing about hardware.

mod guests;
mod images;
mod packages;
mod tools;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{bail, Result};
use clap::Args;

use crate::setup::{self, SetupArgs};
use crate::ui::{self, Tally};
use crate::{mpi_programs, paths};
use guests::{Guest, Ring};
use tools::Tools;

/// Programs that run if none are named.
const PROGRAMS: [&str; 3] = ["hello", "ring", "any_source"];

/// Command-line options.
#[derive(Args, Clone, Debug)]
pub struct VmRingArgs {
    /// Programs of tests/mpi, by name
    #[arg(value_name = "PROGRAM")]
    programs: Vec<String>,

    /// Number of virtual machines
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=5))]
    guests: u8,

    /// Ranks on each machine
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=4))]
    ranks: u8,

    /// Longest time for one program, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    limit: u64,

    #[command(flatten)]
    setup: SetupArgs,
}

/// Boots the machines, runs the programs one after the other, and counts those that passed.
pub fn run(args: &VmRingArgs) -> Result<Tally> {
    let installed = setup::ensure(&args.setup)?;
    let programs = mpi_programs::build(&installed)?;
    let names: Vec<String> = match &args.programs[..] {
        [] => PROGRAMS.map(String::from).into(),
        named => named.to_vec(),
    };
    if let Some(missing) = names.iter().find(|name| !programs.join(name).is_file()) {
        bail!("there is no program {missing} in tests/mpi");
    }
    let tools = tools::build()?;
    let images = images::ensure()?;
    let guests = u32::from(args.guests);
    println!("{} virtual machines, {} rank(s) on each; QEMU emulates their processors:", guests, args.ranks);
    let job = job(args, &names, installed.mpi.wrapper("mpiexec"), &programs, &tools);
    let ring = Ring { images: &images, tools: &tools, guests, job };
    let limit = Duration::from_secs(120 + args.limit * names.len() as u64);
    let report = ring.run(limit)?;
    let mut tally = Tally::default();
    for name in &names {
        let (outcome, passed) = match report.outcome(name) {
            Some((0, seconds)) => (format!("passed {seconds:>8.1} s"), true),
            Some((code, seconds)) => (format!("FAILED {seconds:>8.1} s, exit status {code}"), false),
            None => ("FAILED: it was not started".to_string(), false),
        };
        println!("  {name:<34} {outcome}");
        match passed {
            true => tally.passed += 1,
            false => {
                tally.failed += 1;
                ui::failed(format!("{name} on {guests} virtual machines: see {}", paths::shown(&Guest::log(0))));
            }
        }
    }
    report.notes().for_each(|note| println!("  {note}"));
    Ok(tally)
}

/// Returns the script that the first machine runs.
fn job(args: &VmRingArgs, names: &[String], mpiexec: PathBuf, programs: &Path, tools: &Tools) -> String {
    let hosts: Vec<String> = (0..args.guests).map(|guest| format!("node{guest}")).collect();
    let ranks = u32::from(args.guests) * u32::from(args.ranks);
    let run = |name: &String| {
        format!(
            "read start _ </proc/uptime\n\
             timeout {limit} {mpiexec} -launcher rsh -launcher-exec {remote} -hosts {hosts} -ppn {each} -n {ranks} \
             -genv NTBRING_DEVICE pci {program} </dev/null\n\
             code=$?\n\
             read end _ </proc/uptime\n\
             echo \"vm-ring: {name} ended with $code after $start to $end\"\n",
            limit = args.limit,
            mpiexec = mpiexec.display(),
            remote = tools.remote.display(),
            hosts = hosts.join(","),
            each = args.ranks,
            program = programs.join(name).display(),
        )
    };
    names.iter().map(run).collect()
}
