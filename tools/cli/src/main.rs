//! The user's tool.

mod exec;
mod info;
mod link;
mod running;
mod stats;
mod topo;
mod tune;

use clap::{Parser, Subcommand};
use std::error::Error;
use std::process::ExitCode;

/// Looks after ntbring, the MPI transport for rings of PCIe Non-Transparent Bridges.
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Tells versions, the device, and the settings.
    Info {
        /// Lists every setting with value, origin, default, unit, range and meaning.
        #[arg(long)]
        config: bool,
    },
    /// Draws a network of hosts as its managers find it: ids, master, links, routes.
    Topo(topo::TopoArgs),
    /// Lists the jobs of this user that are running on this machine, and their links that are down.
    Jobs(link::JobsArgs),
    /// Takes a link of a running job down or up.
    Link(link::LinkArgs),
    /// Shows what the ranks of a running job have counted so far, and what went over each link.
    Stats(stats::StatsArgs),
    /// Runs a command, mpiexec say, so that programs linked with another build of MPICH (Debian's, say) use this one.
    Exec(exec::ExecArgs),
    /// Measures which way is best for messages of which size, here and now, and saves the thresholds for all jobs.
    Tune(tune::TuneArgs),
    /// One of the two processes that `tune` measures with.
    #[command(hide = true)]
    TuneRank(tune::RankArgs),
}

fn main() -> ExitCode {
    let done: Result<(), Box<dyn Error>> = match Args::parse().command {
        Command::Info { config } => info::run(config),
        Command::Topo(args) => topo::run(&args),
        Command::Jobs(args) => link::jobs(&args),
        Command::Link(args) => link::link(&args),
        Command::Stats(args) => stats::run(&args),
        Command::Exec(args) => exec::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::TuneRank(args) => tune::rank(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ntbring: {error}");
            ExitCode::FAILURE
        }
    }
}
