//! The arguments of `cargo xtask bench NAME`.

use std::path::PathBuf;

use anyhow::{bail, Result};
use clap::{Args, ValueEnum};

use crate::bench::jobs::{self, Job};
use crate::bench::peers::Source;
use crate::bench::session::Effort;
use crate::bench::{compare, suites};
use crate::paths;
use crate::setup::SetupArgs;

/// The benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// Latency, bandwidth and message rate: of two ranks, at several distances, and of several pairs
    P2p,
    /// Put, get, accumulate, fetch-and-op, compare-and-swap: latency, bandwidth, rate
    Rma,
    /// Nine collectives, of 2, 4 and 8 ranks
    Coll,
    /// Start-up time and memory of 2 and 8 ranks
    Startup,
    /// Four small applications, of 4, 8 and 16 ranks: total time
    Apps,
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

/// Command-line options.
#[derive(Args, Clone, Debug)]
pub struct BenchArgs {
    /// Benchmark to run
    #[arg(value_enum, value_name = "NAME", default_value = "p2p")]
    pub name: Name,

    /// File for the figures of all rounds and the description of the machine [default: target/bench/NAME.json]
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Use fewer rounds, sizes and iterations, for a first look
    #[arg(long)]
    pub quick: bool,

    /// Rounds, each of which runs everything once; medians are shown [default: 5, of compare 9; with --quick 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub rounds: Option<u8>,

    /// Also measure MPIs from here, which are installed below target/ at the first use
    #[arg(long, value_enum, value_name = "SOURCE")]
    pub peers: Option<Source>,

    /// Run only tests (with compare: only measures) whose name contains this
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,

    /// With compare and report: also time directories of MPICH's test suite, with ntbring and with Debian's mpich over
    /// UCX, once; Debian's may take half an hour where there are more ranks than cores [default: coll,rma]
    #[arg(long, value_name = "DIR", num_args = 0.., require_equals = true, value_delimiter = ',',
          default_missing_values = suites::DIRS)]
    pub suites: Vec<String>,

    /// With compare: also print a table in Markdown, to be quoted
    #[arg(long)]
    pub markdown: bool,

    /// With compare and report: measure nothing, use the figures of a file that --json has written
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "rounds", "suites", "peers"])]
    pub from: Option<PathBuf>,

    #[command(flatten)]
    pub setup: SetupArgs,
}

impl BenchArgs {
    /// Returns the effort for a run. The time budget of a figure is divided into batches; even with --quick a batch is
    /// long compared with the clock's resolution.
    pub fn effort(&self) -> Effort {
        let usual = match (self.quick, self.name) {
            (true, _) => 3,
            (false, Name::Compare) => 9,
            (false, _) => 5,
        };
        let rounds = self.rounds.map_or(usual, usize::from);
        let alike = self.name == Name::Compare;
        if alike {
            // Of the many figures of a comparison none may take long.
            let budget = if self.quick { 0.03 } else { 0.05 };
            Effort { rounds, budget, limit: 10, launches: 1, alike }
        } else if self.quick {
            Effort { rounds, budget: 0.05, limit: 10, launches: 1, alike }
        } else {
            Effort { rounds, budget: 0.2, limit: 60, launches: 3, alike }
        }
    }

    /// Returns the file for the figures if the user names none; it holds those of the latest run of this benchmark.
    pub fn stored(&self) -> PathBuf {
        let name = self.name.to_possible_value().map_or_else(String::new, |name| name.get_name().to_string());
        paths::target().join(format!("bench/{name}.json"))
    }

    /// Returns the jobs to run on a machine with so many cores; for compare, those that its measures need.
    pub fn jobs(&self, cores: usize) -> Result<Vec<Job>> {
        let only = self.only.as_deref();
        let jobs = match self.name {
            Name::Compare => compare::jobs(only, cores),
            Name::P2p => jobs::p2p(self.quick),
            Name::Rma => jobs::rma(self.quick),
            Name::Coll => jobs::coll(self.quick),
            Name::Startup => jobs::startup(),
            Name::Apps => jobs::apps(),
            Name::Limits => vec![jobs::limits(self.quick)],
            Name::Ablation => jobs::ablation(self.quick),
            Name::Efficiency => jobs::efficiency(self.quick),
            Name::Report => jobs::all(self.quick),
        };
        let jobs = match only {
            Some(only) if self.name != Name::Compare => jobs::restrict(jobs, only),
            _ => jobs,
        };
        let jobs = if self.name == Name::Compare { jobs::merged(jobs) } else { jobs::singly(jobs) };
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: BenchArgs,
    }

    fn parse(line: &str) -> Result<BenchArgs, clap::Error> {
        Line::try_parse_from(line.split_whitespace()).map(|line| line.args)
    }

    #[test]
    fn effort_and_jobs_follow_the_options() {
        let args = parse("bench compare --quick --only latency_8B").unwrap();
        assert_eq!((args.effort().rounds, args.jobs(2).unwrap().len()), (3, 2));
        assert_eq!(parse("bench coll --rounds 7").unwrap().effort().rounds, 7);
        assert_eq!(parse("bench compare").unwrap().effort().rounds, 9);
        assert_eq!(parse("bench ablation").unwrap().jobs(2).unwrap()[1].tests[0].sizes.len(), 21);
        assert_eq!(parse("bench efficiency --quick").unwrap().jobs(2).unwrap().len(), 2);
        assert_eq!(parse("bench compare --suites").unwrap().suites, suites::DIRS);
        let args = parse("bench compare --suites=attr,topo --only suite").unwrap();
        assert_eq!((args.suites.len(), args.jobs(2).unwrap().len()), (2, 0));
        assert!(args.stored().ends_with("bench/compare.json"));
        assert_eq!(parse("bench coll --peers pypi").unwrap().peers, Some(Source::Pypi));
        let all = parse("bench report").unwrap().jobs(2).unwrap();
        assert!(all.len() > parse("bench").unwrap().jobs(2).unwrap().len());
    }

    #[test]
    fn a_comparison_has_few_jobs_for_many_measures() {
        let jobs = |line| parse(line).unwrap().jobs(2).unwrap();
        assert_eq!(jobs("bench compare --only 4ranks").len(), 5, "collectives, and four applications");
        assert_eq!(jobs("bench compare --only allreduce_8B_2ranks").len(), 2, "bound and unbound");
        assert_eq!(jobs("bench apps").len(), 12);
    }

    #[test]
    fn bad_input_is_refused() {
        let unknown = parse("bench compare --only nonsense").unwrap().jobs(2).unwrap_err();
        assert!(unknown.to_string().contains("latency_8B"), "{unknown}");
        assert!(parse("bench p2p --only nonsense").unwrap().jobs(2).is_err());
        assert!(parse("bench p2p --rounds 0").is_err());
        assert!(parse("bench compare --peers nonsense").is_err());
        assert!(parse("bench report --from a --peers pypi").is_err());
        assert!(parse("bench nonsense").is_err());
        assert!(parse("bench report --from a --json b").is_err());
    }
}
