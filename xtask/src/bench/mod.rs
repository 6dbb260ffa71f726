//! `cargo xtask bench`: measures ntbring side by side with the other MPIs of this machine.
//!
//! | module | holds |
//! |---|---|
//! | `jobs` | the jobs that can be run: program, ranks, tests |
//! | `contestants`, `roster` | the MPIs and builds that are measured, and how each is started |
//! | `peers` | MPIs that pip installs, to compare with |
//! | `options`, `output` | the arguments, and what they ask to be shown |
//! | `compile`, `session`, `attempts`, `states` | compiling, and running round by round; failures; telling states of the machine apart |
//! | `suites` | times of MPICH's test suite |
//! | `figures`, `stored` | the results, and the file of `--json` |
//! | `papers` | the experiments of the papers, repeated |
//! | `tables`, `compare`, `report` | presentation of the results |
//! | `ab` | two builds of ntbring, compared with each other |
//! | `shmem` | the OpenSHMEM library: compared with others, and the experiments of its paper |
//! | `machine`, `disturbance` | the machine that was measured on, and the load of other processes on it |

mod ab;
mod attempts;
mod compare;
mod compile;
mod contestants;
mod disturbance;
mod figures;
mod jobs;
mod machine;
mod options;
mod output;
mod papers;
mod peers;
mod report;
mod roster;
mod session;
mod shmem;
mod states;
mod stored;
mod suites;
mod tables;

use anyhow::{bail, Context, Result};
use clap::{Args, Subcommand};

use crate::{paths, setup, ui};
use options::{BenchArgs, Name};
use session::{run_watched, Session};
use stored::Stored;

/// A benchmark by its name, or a subcommand.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub struct BenchCommand {
    #[command(subcommand)]
    other: Option<Other>,

    #[command(flatten)]
    args: BenchArgs,
}

#[derive(Clone, Debug, Subcommand)]
enum Other {
    /// Compare two builds of ntbring in turn: ratios of medians, and instructions of an 8-byte message
    Ab(ab::AbArgs),
    /// Compare the OpenSHMEM library with Open MPI's and with ntbring's own MPI windows, near and far
    Shmem(shmem::CompareArgs),
    /// Repeat the experiments of the paper on OpenSHMEM over an NTB ring: target/bench/shmem-paper.txt
    ShmemPaper(shmem::ShmemArgs),
}

/// Runs the command.
pub fn run(command: &BenchCommand) -> Result<()> {
    match &command.other {
        Some(Other::Ab(args)) => ab::run(args),
        Some(Other::Shmem(args)) => shmem::run(args),
        Some(Other::ShmemPaper(args)) => shmem::run_paper(args),
        None => run_named(&command.args),
    }
}

/// Compiles the benchmarks, runs them, and shows the results.
fn run_named(args: &BenchArgs) -> Result<()> {
    if let Some(file) = &args.from {
        let stored = Stored::read(file)?;
        return match args.name {
            Name::Report => output::write_report(&stored),
            Name::Compare => output::show_comparison(&stored, args),
            _ => bail!("--from is for `cargo xtask bench compare` and `report`"),
        };
    }
    if !args.suites.is_empty() && !matches!(args.name, Name::Compare | Name::Report) {
        bail!("--suites is for `cargo xtask bench compare` and `report`");
    }
    if args.markdown && args.name != Name::Compare {
        bail!("--markdown is for `cargo xtask bench compare`");
    }
    let cores = machine::cores();
    let jobs = args.jobs(cores.len())?;
    let file = args.json.clone().unwrap_or_else(|| args.stored());
    if let Some(parent) = file.parent() {
        // An unusable directory is reported now rather than after all measurements.
        std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    }
    let installed = setup::ensure(&args.setup)?;
    let mut machine = machine::describe(&cores);
    let effort = args.effort();
    let mut session = Session::new(&installed, args.peers, effort, cores, !args.suites.is_empty())?;
    ui::step("compiling the benchmarks", || session.compile(&jobs))?;
    let takers = session.taking_part(&jobs);
    let mpis: Vec<_> = takers
        .iter()
        .map(|one| machine::describe_mpi(one, &session.binary(jobs::Program::Startup, one.suffix)))
        .collect();
    println!("\n{}", machine::shown(&machine, &mpis));
    machine::warn(&machine);

    run_watched(&mut session, &jobs, &mut machine)?;
    let (figures, states, notes) = (session.figures.clone(), session.states.clone(), session.notes());
    let mut stored = Stored { machine, mpis, rounds: effort.rounds, quick: args.quick, figures, states, notes };
    // Figures are stored before the suites run, so that they are kept if the user ends a suite that takes too long.
    stored.write(&file)?;
    for dir in &args.suites {
        let dirs = std::slice::from_ref(dir);
        let notes = suites::measure(dirs, &session.contestants, &args.setup, &mut stored.figures)?;
        stored.notes.extend(notes);
        stored.write(&file)?;
    }
    println!("\nfigures: {}\n", paths::shown(&file));
    match args.name {
        Name::Compare => output::show_comparison(&stored, args)?,
        Name::Report => output::write_report(&stored)?,
        Name::Ablation => output::show_ablation(&stored)?,
        Name::Efficiency => output::show_efficiency(&stored),
        _ => output::show_tables(&stored)?,
    }
    machine::warn(&stored.machine);
    stored.notes.iter().for_each(|note| println!("{note}"));
    session.conclude()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        command: BenchCommand,
    }

    fn parse_command(line: &str) -> Result<BenchCommand, clap::Error> {
        Line::try_parse_from(line.split_whitespace()).map(|line| line.command)
    }

    #[test]
    fn builds_are_compared_by_a_command_of_its_own() {
        let other = |line: &str| parse_command(line).unwrap().other;
        assert!(matches!(other("bench ab HEAD worktree --only latency"), Some(Other::Ab(_))));
        for line in ["bench", "bench p2p", "bench --quick coll", "bench compare --only ab"] {
            assert!(other(line).is_none(), "{line}");
        }
        assert!(parse_command("bench ab HEAD").is_err());
        assert!(parse_command("bench --quick ab HEAD HEAD").is_err());
    }

    #[test]
    fn options_are_refused_where_they_do_not_belong() {
        for option in ["--suites", "--markdown"] {
            let args = parse_command(&format!("bench p2p {option}")).unwrap().args;
            assert!(run_named(&args).unwrap_err().to_string().contains(&format!("{option} is for")));
        }
    }
}
