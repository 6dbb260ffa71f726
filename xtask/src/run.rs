//! `cargo xtask run`: runs the demo, or the user's own program, on a ring of emulated hosts.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{bail, Result};
use clap::Args;

use crate::mpi::Layout;
use crate::setup::{self, SetupArgs};
use crate::{demo, process};

/// Number of hosts on the ring if the user gives none.
const DEFAULT_HOSTS: usize = 4;

/// Command-line options.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// Hosts of the ring, 1 to 64 [default: 4]
    #[arg(long, value_name = "H", value_parser = clap::value_parser!(u8).range(1..=64))]
    hosts: Option<u8>,

    /// Ranks, spread over the hosts in blocks [default: one on each host]
    #[arg(short = 'n', long = "ranks", value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    ranks: Option<u16>,

    /// Run an OpenSHMEM program, or the demo of OpenSHMEM
    #[arg(long)]
    shmem: bool,

    /// Your own program and its arguments, instead of the demo
    #[arg(last = true, value_name = "PROG")]
    program: Vec<OsString>,

    #[command(flatten)]
    setup: SetupArgs,
}

/// Sets up if needed, then runs the program. Returns the program's exit code.
pub fn run(args: &RunArgs) -> Result<ExitCode> {
    let hosts = args.hosts.map_or(DEFAULT_HOSTS, usize::from);
    let ranks = args.ranks.map_or(hosts, usize::from);
    let layout = Layout::spread(ranks, hosts);
    if args.hosts.is_some() && ranks < hosts {
        bail!("{ranks} rank(s) cannot be spread over {hosts} hosts: each host needs one");
    }
    if args.program.is_empty() && ranks < 2 {
        bail!("the demo needs at least 2 ranks");
    }
    let installed = setup::ensure(&args.setup)?;
    let mut command = installed.mpi.run(&layout, &[]);
    match args.program.is_empty() {
        true if args.shmem => command.arg(demo::shmem(&installed)?),
        true => return demo::run(&installed, &layout),
        // A program of OpenSHMEM is launched as one of MPI.
        false => command.args(&args.program),
    };
    let outcome = process::run_shown(&mut command, None)?;
    let code = outcome.status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}
