//! `cargo xtask ...`: the commands that developers and new users call.

mod bench;
mod demo;
mod docs;
mod environment;
mod foreign;
mod fuzz;
mod graph;
mod install;
mod lock;
mod mpi;
mod mpi_programs;
mod mpich_test;
mod namespaces;
#[cfg(test)]
mod oldest_rust;
mod package;
mod parallel;
mod paths;
mod process;
mod prose;
mod run;
mod setup;
mod shmem_test;
mod sim;
mod test;
mod ui;
mod variants;
mod version;
mod vm_ring;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Set-up, tests and measurements of ntbring.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the demo, or your own program, on a ring of emulated hosts (with set-up first, if needed)
    Run(run::RunArgs),

    /// Run all tests that CI runs (with set-up first, if needed)
    Test(test::TestArgs),

    /// Build and install MPICH with ntbring below target/mpich; steps that are up to date are skipped
    Setup(setup::SetupCommand),

    /// Install the result of set-up in any directory, as a tree that can be moved
    Install(install::InstallArgs),

    /// Make packages for users: a Python wheel, Debian packages, a tarball, the sources
    Package(package::PackageArgs),

    /// Run the MPI programs of tests/mpi, each on several rings
    MpiTest(mpi_programs::MpiTestArgs),

    /// Run the OpenSHMEM programs of tests/shmem, each on several rings
    ShmemTest(shmem_test::ShmemTestArgs),

    /// Run MPICH's own test suite on the ring
    MpichTest(mpich_test::MpichTestArgs),

    /// Run programs that were not written for ntbring: other languages, Debian's binaries, mpi4py
    ForeignTest(foreign::ForeignArgs),

    /// Fuzz all parsers of data that other ranks have written, for a given time
    Fuzz(fuzz::FuzzArgs),

    /// Measure ntbring side by side with the other MPIs that are installed on this machine
    Bench(bench::BenchCommand),

    /// Build the documentation as a site with search, in target/docs (mdBook is installed below target at first use)
    Docs(docs::DocsArgs),

    /// Print the crates of the workspace and their dependencies on each other, or circles among files
    Graph(graph::GraphArgs),

    /// Count doc sentences that begin with a relative word used as a noun
    Prose(prose::ProseArgs),

    /// Run the simulator of the ring: managers, the papers' experiments, sweeps (docs/simulator.md)
    Sim(sim::SimArgs),

    /// Run MPI or OpenSHMEM programs on a ring of virtual machines with modelled adapters
    VmRing(vm_ring::VmRingArgs),
}

fn main() -> ExitCode {
    environment::clean();
    environment::forgive_leaks();
    let command = Cli::parse().command;
    if !matches!(command, Command::Run(_) | Command::Setup(_)) {
        environment::ignore_tuned();
    }
    match run(command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            // The exit status that a shell reports for a program that was ended by Ctrl-C (SIGINT).
            ExitCode::from(if process::interrupted() { 130 } else { 1 })
        }
    }
}

fn run(command: Command) -> Result<ExitCode> {
    process::watch_for_interrupts()?;
    match command {
        Command::Run(args) => run::run(&args),
        Command::Test(args) => test::run(&args).map(conclude),
        Command::Setup(args) => setup::run(&args).map(|_| ExitCode::SUCCESS),
        Command::Package(args) => package::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Install(args) => install::run(&args).map(|()| ExitCode::SUCCESS),
        Command::MpiTest(args) => mpi_programs::run(&args).map(conclude),
        Command::ShmemTest(args) => shmem_test::run(&args).map(conclude),
        Command::MpichTest(args) => mpich_test::run(&args).map(conclude),
        Command::ForeignTest(args) => foreign::run(&args).map(conclude),
        Command::Fuzz(args) => fuzz::run(&args).map(conclude),
        Command::Bench(args) => bench::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Docs(args) => docs::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Graph(args) => graph::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Prose(args) => prose::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Sim(args) => sim::run(&args),
        Command::VmRing(args) => vm_ring::run(&args).map(conclude),
    }
}

/// Prints the last line of a command that counts tests and returns its exit code.
fn conclude(tally: ui::Tally) -> ExitCode {
    print!("{}", ui::all_failed());
    println!("{tally}");
    ExitCode::from(u8::from(tally.failed > 0))
}
