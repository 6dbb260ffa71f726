//! `cargo xtask bench`: measures ntbring side by side with the other MPIs of this machine.
//!
//! | module | holds |
//! |---|---|
//! | `jobs` | the jobs that can be run: program, ranks, tests |
//! | `contestants`, `roster` | the MPIs and builds that are measured, and how each is started |
//! | `peers` | MPIs that pip installs, to compare with |
//! | `session`, `states` | compiling, and running round by round; telling states of the machine apart |
//! | `suites` | times of MPICH's test suite |
//! | `figures`, `stored` | the results, and the file of `--json` |
//! | `papers` | the experiments of the papers, repeated |
//! | `tables`, `compare`, `report` | presentation of the results |
//! | `ab` | two builds of ntbring, compared with each other |
//! | `shmem` | the OpenSHMEM library: compared with others, and the experiments of its paper |
//! | `machine`, `disturbance` | the machine that was measured on, and the load of other processes on it |

mod ab;
mod compare;
mod contestants;
mod disturbance;
mod figures;
mod jobs;
mod machine;
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

use std::path::PathBuf;

use anyhow::{bail, Context, Result};
use clap::{Args, Subcommand, ValueEnum};

use crate::setup::{self, SetupArgs};
use crate::{paths, ui};
use jobs::Job;
use peers::Source;
use session::{run_watched, Effort, Session};
use stored::Stored;

/// The benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    /// Latency, bandwidth and message rate: of two ranks, at several distances, and of several pairs
    P2p,
    /// Put, get, accumulate, fetch-and-op, compare-and-swap: latency, bandwidth, rate
    Rma,
    /// Barrier, bcast, reduce, allreduce, alltoall, allgather of 2, 4 and 8 ranks
    Coll,
    /// Start-up time and memory of 2 and 8 ranks
    Startup,
    /// Latency and bandwidth that two processes reach on this machine without MPI
    Limits,
    /// ntbring against the best of the other MPIs, and the limits: a table, then one JSON object on each line
    Compare,
    /// The five models of MPI-VMMC: the effect of each mechanism, by size; writes plots, too
    Ablation,
    /// The part of the raw window's bandwidth that MPI reaches, emulated and under link models
    Efficiency,
    /// All benchmarks, as one page with plots: target/bench/report.html
    Report,
}

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

/// Command-line options.
#[derive(Args, Clone, Debug)]
struct BenchArgs {
    /// Benchmark to run
    #[arg(value_enum, value_name = "NAME", default_value = "p2p")]
    name: Name,

    /// File for the figures of all rounds and the description of the machine [default: target/bench/NAME.json]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Use fewer rounds, sizes and iterations, for a first look
    #[arg(long)]
    quick: bool,

    /// Rounds, each of which runs everything once; medians are shown [default: 5, of compare 15; with --quick 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    rounds: Option<u8>,

    /// Also measure MPIs from here, which are installed below target/ at the first use
    #[arg(long, value_enum, value_name = "SOURCE")]
    peers: Option<Source>,

    /// Run only tests (with compare: only measures) whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,

    /// With compare and report: also time directories of MPICH's test suite, with ntbring and with Debian's mpich over
    /// UCX, once; Debian's may take half an hour where there are more ranks than cores [default: coll,rma]
    #[arg(long, value_name = "DIR", num_args = 0.., require_equals = true, value_delimiter = ',',
          default_missing_values = suites::DIRS)]
    suites: Vec<String>,

    /// With compare and report: measure nothing, use the figures of a file that --json has written
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "rounds", "only", "suites", "peers"])]
    from: Option<PathBuf>,

    #[command(flatten)]
    setup: SetupArgs,
}

impl BenchArgs {
    /// Returns the effort for a run. The time budget of a figure is divided into batches; even with --quick a batch is
    /// long compared with the clock's resolution.
    fn effort(&self) -> Effort {
        let usual = match (self.quick, self.name) {
            (true, _) => 3,
            (false, Name::Compare) => 15,
            (false, _) => 5,
        };
        let rounds = self.rounds.map_or(usual, usize::from);
        let alike = self.name == Name::Compare;
        if self.quick {
            Effort { rounds, budget: 0.05, limit: 10, launches: 1, alike }
        } else {
            Effort { rounds, budget: 0.2, limit: 60, launches: 3, alike }
        }
    }

    /// Returns the file for the figures if the user names none; it holds those of the latest run of this benchmark.
    fn stored(&self) -> PathBuf {
        let name = self.name.to_possible_value().map_or_else(String::new, |name| name.get_name().to_string());
        paths::target().join(format!("bench/{name}.json"))
    }

    /// Returns the jobs to run; for compare, those that its measures need.
    fn jobs(&self) -> Result<Vec<Job>> {
        let only = self.only.as_deref();
        let jobs = match self.name {
            Name::Compare => compare::jobs(only),
            Name::P2p => jobs::p2p(self.quick),
            Name::Rma => jobs::rma(self.quick),
            Name::Coll => jobs::coll(self.quick),
            Name::Startup => jobs::startup(),
            Name::Limits => vec![jobs::limits(self.quick)],
            Name::Ablation => jobs::ablation(self.quick),
            Name::Efficiency => jobs::efficiency(self.quick),
            Name::Report => jobs::all(self.quick),
        };
        let jobs = match only {
            Some(only) if self.name != Name::Compare => jobs::restrict(jobs, only),
            _ => jobs,
        };
        let jobs = jobs::singly(jobs);
        // A suite is not a job, but may be all that was asked for.
        if jobs.is_empty() && self.suites.is_empty() {
            let hint = match self.name {
                Name::Compare => format!("; the measures are: {}", compare::names().join(" ")),
                _ => String::new(),
            };
            bail!("no test or measure has a name that contains \"{}\"{hint}", only.unwrap_or_default());
        }
        Ok(jobs)
    }
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
            Name::Report => write_report(&stored),
            Name::Compare => show_comparison(&stored, None),
            _ => bail!("--from is for `cargo xtask bench compare` and `report`"),
        };
    }
    if !args.suites.is_empty() && !matches!(args.name, Name::Compare | Name::Report) {
        bail!("--suites is for `cargo xtask bench compare` and `report`");
    }
    let jobs = args.jobs()?;
    let file = args.json.clone().unwrap_or_else(|| args.stored());
    if let Some(parent) = file.parent() {
        // An unusable directory is reported now rather than after all measurements.
        std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    }
    let installed = setup::ensure(&args.setup)?;
    let cores = machine::cores();
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
        Name::Compare => show_comparison(&stored, args.only.as_deref())?,
        Name::Report => write_report(&stored)?,
        Name::Ablation => show_ablation(&stored)?,
        Name::Efficiency => show_efficiency(&stored),
        _ => show_tables(&stored)?,
    }
    machine::warn(&stored.machine);
    stored.notes.iter().for_each(|note| println!("{note}"));
    session.conclude()
}

fn keep_plot(name: &str, svg: &str) -> Result<()> {
    let file = paths::target().join(format!("bench/{name}.svg"));
    std::fs::write(&file, svg).with_context(|| format!("cannot write {}", file.display()))?;
    println!("plot: {}", paths::shown(&file));
    Ok(())
}

fn show_tables(stored: &Stored) -> Result<()> {
    for table in stored.tables() {
        println!("{}\n", table.text());
    }
    println!("medians of {} rounds; in brackets: how many times better than it the first column is", stored.rounds);
    report::plots(stored)?.iter().try_for_each(|(name, svg)| keep_plot(name, svg))
}

fn show_ablation(stored: &Stored) -> Result<()> {
    for table in papers::ablation::tables(&stored.figures) {
        println!("{}\n", table.text());
    }
    println!("medians of {} rounds, the models in turn; docs/experiments.md says what the models do", stored.rounds);
    papers::ablation::plots(&stored.figures)?
        .iter()
        .try_for_each(|(link, svg)| keep_plot(&format!("ablation-{link}"), svg))
}

fn show_efficiency(stored: &Stored) {
    if let Some(table) = papers::efficiency::table(&stored.figures) {
        println!("{}\n", table.text());
    }
    println!("medians of {} rounds; {}", stored.rounds, papers::efficiency::PAPERS);
}

fn show_comparison(stored: &Stored, only: Option<&str>) -> Result<()> {
    let mut entries = compare::evaluate(stored, only);
    entries.extend(suites::entries(&stored.figures, only));
    println!("{}", compare::table(&entries));
    println!(
        "medians of as many runs as the column says, ours/the peer's, of at least {} rounds; ratio: ours over the peer's; spread: of \
         these runs, ours and the peer's; cores: how far apart they were, as half the round trip of a cache line: only runs in that \
         state of the machine are compared; -: it was not the same for long enough, and all runs are\n",
        stored.rounds
    );
    println!("{}\n", stored.machine.identity());
    for entry in &entries {
        println!("{}", serde_json::to_string(entry)?);
    }
    Ok(())
}

fn write_report(stored: &Stored) -> Result<()> {
    let file = paths::target().join("bench/report.html");
    report::write(stored, &file)?;
    println!("the report: {}", paths::shown(&file));
    Ok(())
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

    fn parse(line: &str) -> Result<BenchArgs, clap::Error> {
        parse_command(line).map(|command| command.args)
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
    fn effort_and_jobs_follow_the_options() {
        let args = parse("bench compare --quick --only latency_8B").unwrap();
        assert_eq!((args.effort().rounds, args.jobs().unwrap().len()), (3, 2));
        assert_eq!(parse("bench coll --rounds 7").unwrap().effort().rounds, 7);
        assert_eq!(parse("bench compare").unwrap().effort().rounds, 15);
        assert_eq!(parse("bench ablation").unwrap().jobs().unwrap()[1].tests[0].sizes.len(), 21);
        assert_eq!(parse("bench efficiency --quick").unwrap().jobs().unwrap().len(), 2);
        assert_eq!(parse("bench compare --suites").unwrap().suites, suites::DIRS);
        let args = parse("bench compare --suites=attr,topo --only suite").unwrap();
        assert_eq!((args.suites.len(), args.jobs().unwrap().len()), (2, 0));
        assert!(args.stored().ends_with("bench/compare.json"));
        assert_eq!(parse("bench coll --peers pypi").unwrap().peers, Some(Source::Pypi));
        let all = parse("bench report").unwrap().jobs().unwrap();
        assert!(all.len() > parse("bench").unwrap().jobs().unwrap().len());
    }

    #[test]
    fn bad_input_is_refused() {
        let unknown = parse("bench compare --only nonsense").unwrap().jobs().unwrap_err();
        assert!(unknown.to_string().contains("latency_8B"), "{unknown}");
        assert!(parse("bench p2p --only nonsense").unwrap().jobs().is_err());
        assert!(parse("bench p2p --rounds 0").is_err());
        assert!(parse("bench compare --peers nonsense").is_err());
        assert!(parse("bench report --from a --peers pypi").is_err());
        assert!(parse("bench nonsense").is_err());
        assert!(parse("bench report --from a --json b").is_err());
        assert!(run_named(&parse("bench p2p --suites").unwrap()).unwrap_err().to_string().contains("--suites is for"));
    }
}
