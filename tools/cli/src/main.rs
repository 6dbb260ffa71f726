//! The command-line tool `ntbring`.

mod bench;
mod bind;
mod columns;
mod describe;
mod exec;
mod info;
mod link;
mod matrix;
mod probe;
mod reading;
mod run;
mod running;
mod stats;
mod timeline;
mod top;
mod topo;
mod tune;

use clap::{Parser, Subcommand};
use std::error::Error;
use std::process::ExitCode;

/// Administers ntbring, the MPI transport for rings of PCIe Non-Transparent Bridges.
#[derive(Parser)]
#[command(name = "ntbring", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Prints versions, the device, and the settings.
    Info {
        /// Lists every setting with value, origin, default, unit, range and meaning.
        #[arg(long)]
        config: bool,
    },
    /// Runs a program, or several, on a ring of emulated hosts: a short form of mpiexec.
    Run(run::RunArgs),
    /// Shows a network of hosts as its managers discover it: ids, master, links, routes.
    Topo(topo::TopoArgs),
    /// Lists the NTB adapters of this host, what is wrong with each of them, and the command that mends it.
    Probe(probe::ProbeArgs),
    /// Binds the driver vfio-pci to adapters, so that ntbringd can use them.
    Bind(bind::BindArgs),
    /// Gives adapters back to the kernel's own driver.
    Unbind(bind::BindArgs),
    /// Measures what the hardware can do.
    Bench(bench::BenchArgs),
    /// Lists the running jobs of this user on this machine, and their links that are down.
    Jobs(link::JobsArgs),
    /// Sets a link of a running job down or up.
    Link(link::LinkArgs),
    /// Shows who sends how much to whom: a table or heat map of the messages between ranks or hosts.
    Matrix(matrix::MatrixArgs),
    /// Shows the counters of the ranks of a running job, and of each link.
    Stats(stats::StatsArgs),
    /// Joins the parts of a timeline (NTBRING_TIMELINE) into one file, for Perfetto.
    #[command(subcommand)]
    Timeline(timeline::TimelineCommand),
    /// Shows a running job live, in the terminal or as a page for a browser: links, ranks, and their rates.
    Top(top::TopArgs),
    /// Runs a command such as mpiexec, so that programs linked with another build of MPICH (e.g. Debian's) use this
    /// one.
    Exec(exec::ExecArgs),
    /// Measures the best transfer method for each message size on this machine, and saves the thresholds for all
    /// jobs.
    Tune(tune::TuneArgs),
    /// Prints completions for a shell or a page of the documentation, or writes the man pages of this tool.
    Describe(describe::DescribeArgs),
    /// Runs one of the two measuring processes of `tune`.
    #[command(hide = true)]
    TuneRank(tune::RankArgs),
}

fn main() -> ExitCode {
    let done: Result<(), Box<dyn Error>> = match Args::parse().command {
        Command::Info { config } => info::run(config),
        Command::Run(args) => run::run(&args),
        Command::Topo(args) => topo::run(&args),
        Command::Probe(args) => probe::run(&args),
        Command::Bind(args) => bind::bind(&args),
        Command::Unbind(args) => bind::unbind(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Jobs(args) => link::jobs(&args),
        Command::Link(args) => link::link(&args),
        Command::Matrix(args) => matrix::run(&args),
        Command::Stats(args) => stats::run(&args),
        Command::Timeline(command) => timeline::run(&command),
        Command::Top(args) => top::run(&args),
        Command::Exec(args) => exec::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Describe(args) => describe::run::<Args>(&args),
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
