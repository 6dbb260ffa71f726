//! `cargo xtask bench ab OLD NEW`: compares two builds of ntbring, which are run in turn.
//!
//! | module | holds |
//! |---|---|
//! | `side`, `git` | the builds that OLD and NEW name |
//! | `c_side`, `builds` | an installation of each: built, or taken from an earlier comparison |
//! | `check` | checks that library and C side match, and that this library is loaded |
//! | `rows` | the rows of the table: ratios, spreads, verdicts |
//! | `instructions` | the instructions of a message |

mod builds;
mod c_side;
mod check;
mod git;
mod instructions;
mod pair;
mod rows;
mod side;

use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use clap::Args;

use crate::bench::compile;
use crate::bench::contestants::{self, Contestant};
use crate::bench::jobs::Program;
use crate::bench::machine::{self, Machine};
use crate::bench::session::{run_watched, Effort, Session};
use crate::bench::stored::Stored;
use crate::mpi::Mpi;
use crate::setup::SetupArgs;
use crate::variants::assignment;
use crate::{lock, paths, process, ui};
use builds::Builds;
use pair::Pair;
use rows::{Entry, Row};
use side::Side;

/// Default number of rounds.
const ROUNDS: u8 = 9;

/// The names of the two contestants.
const NAMES: Pair<&str> = Pair { old: "old", new: "new" };

/// Explanation below the table.
const LEGEND: &str = "NEW/OLD: of the medians of as many runs as the column says, OLD's/NEW's; spread: width of the middle half of \
    these runs over their median, OLD's and NEW's; WORSE, better: by more than 3 % (instructions: 1 %) and by more than either \
    spread; ?: too few runs to say; cores: how far apart they were, as half the round trip of a cache line: only runs in that \
    state of the machine are compared; -: all runs are";

/// Command-line options of `bench ab`.
#[derive(Args, Clone, Debug)]
pub struct AbArgs {
    /// Build to compare with: a commit, `worktree` (the present tree), a libntbring.so, or the directory of an
    /// installation
    old: String,

    /// Build to judge, named in the same way
    new: String,

    /// Run only rows whose name contains this, such as latency_8B
    #[arg(long, value_name = "NAME")]
    only: Option<String>,

    /// Least number of runs of each test with each side; medians are shown
    #[arg(long, value_name = "N", default_value_t = ROUNDS, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,

    /// Set a variable for OLD only
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    old_env: Vec<(String, String)>,

    /// Set a variable for NEW only
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    new_env: Vec<(String, String)>,

    /// File for the figures of all rounds and the description of the machine [default: target/bench/ab.json]
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    #[command(flatten)]
    setup: SetupArgs,
}

impl AbArgs {
    fn rows(&self) -> Result<Vec<Row>> {
        let only = self.only.as_deref();
        let rows = rows::chosen(only);
        if rows.is_empty() {
            let (only, names) = (only.unwrap_or_default(), rows::names().join(" "));
            bail!("no row has a name that contains \"{only}\"; the rows are: {names}");
        }
        Ok(rows)
    }

    fn effort(&self) -> Effort {
        Effort { rounds: usize::from(self.rounds), budget: 0.2, limit: 60, launches: 1, alike: true }
    }
}

/// Runs the command: builds, measures, shows the results.
pub fn run(args: &AbArgs) -> Result<()> {
    let rows = args.rows()?;
    let sides = Pair { old: Side::parse(&args.old)?, new: Side::parse(&args.new)? };
    let dir = paths::target().join("bench/ab");
    let file = args.json.clone().unwrap_or_else(|| paths::target().join("bench/ab.json"));
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    }
    let _lock = lock::take(&dir.join("lock"))?;
    let places = Builds::new(&dir, &args.setup)?.both(&sides)?;
    for (side, place) in [(&sides.old, &places.old), (&sides.new, &places.new)] {
        check::installation(place, &dir).with_context(|| format!("{side} cannot be measured"))?;
    }
    let cores = machine::cores();
    let mut session = Session::of(contestants(args, &sides, &places), args.effort(), cores.clone(), dir.join("run"))?;
    let stored = measure(&mut session, &rows, machine::describe(&cores), &dir.join("run"))?;
    let entries = evaluate(&rows, &stored);
    stored.write_with(&file, Some(("ab", serde_json::to_value(&entries)?)))?;
    println!("\nfigures: {}\n", paths::shown(&file));
    println!("OLD: {}\nNEW: {}\n", described(&sides.old, &args.old_env), described(&sides.new, &args.new_env));
    println!("{}\n{LEGEND}\n", rows::table(&entries));
    for entry in &entries {
        println!("{}", serde_json::to_string(entry)?);
    }
    machine::warn(&stored.machine);
    stored.notes.iter().for_each(|note| println!("{note}"));
    session.conclude()
}

fn contestants(args: &AbArgs, sides: &Pair<Side>, places: &Pair<PathBuf>) -> Vec<Contestant> {
    let one = |name, side: &Side, place: &Path, env: &[(String, String)]| {
        contestants::build(&Mpi::of_prefix(place), name, side.to_string(), env.to_vec())
    };
    vec![one(NAMES.old, &sides.old, &places.old, &args.old_env), one(NAMES.new, &sides.new, &places.new, &args.new_env)]
}

/// Compiles the benchmarks with each side and runs them in turn.
fn measure(session: &mut Session, rows: &[Row], mut machine: Machine, dir: &Path) -> Result<Stored> {
    let jobs = rows::jobs(rows);
    let startup = |session: &Session, one: &Contestant| session.binary(Program::Startup, one.suffix);
    ui::step("compiling the benchmarks", || {
        session.compile(&jobs)?;
        // The start-up benchmark reports the version, which is shown even if only instructions are asked for.
        session.contestants.iter().try_for_each(|one| {
            let sources = Program::Startup.sources();
            compile::compile(
                one.mpicc.as_deref().context("it has no MPI compiler")?,
                sources,
                &startup(session, one),
                &dir.join("compile.log"),
            )
        })
    })?;
    let mpis: Vec<_> =
        session.contestants.iter().map(|one| machine::describe_mpi(one, &startup(session, one))).collect();
    println!("\n{}", machine::shown(&machine, &mpis));
    machine::warn(&machine);

    run_watched(session, &jobs, &mut machine)?;
    let mut notes = session.notes();
    if rows::count_instructions(rows) {
        // Other processes that run meanwhile slow valgrind down but do not change the counts.
        match instructions::measure(&session.contestants, dir, &mut session.figures) {
            Err(error) if !process::interrupted() => notes.push(format!("instructions are not counted: {error:#}")),
            counted => counted?,
        }
    }
    let (figures, states) = (session.figures.clone(), session.states.clone());
    Ok(Stored { machine, mpis, rounds: session.rounds(), quick: false, figures, states, notes })
}

fn evaluate(rows: &[Row], stored: &Stored) -> Vec<Entry> {
    rows::evaluate(rows, &stored.figures, &stored.states, stored.rounds, NAMES)
}

/// Describes a side, with the variables that are set for it alone.
fn described(side: &Side, env: &[(String, String)]) -> String {
    let env: Vec<String> = env.iter().map(|(name, value)| format!(", {name}={value}")).collect();
    format!("{side}{}", env.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: AbArgs,
    }

    fn parse(line: &str) -> Result<AbArgs, clap::Error> {
        Line::try_parse_from(line.split_whitespace()).map(|line| line.args)
    }

    #[test]
    fn options_are_understood() {
        let args = parse("ab HEAD worktree --new-env A=1 --new-env B=x=y --old-env C= --only latency").unwrap();
        assert_eq!((args.old.as_str(), args.new.as_str(), args.effort().rounds), ("HEAD", "worktree", 9));
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        assert_eq!(args.new_env, [pair("A", "1"), pair("B", "x=y")]);
        assert_eq!(args.old_env, [pair("C", "")]);
        assert_eq!(args.rows().unwrap().len(), 6);
        assert_eq!(described(&Side::Worktree, &args.new_env), "the present tree, A=1, B=x=y");
        assert_eq!(parse("ab a b --rounds 3").unwrap().effort().rounds, 3);
    }

    #[test]
    fn bad_input_is_refused() {
        for line in ["ab", "ab HEAD", "ab a b c", "ab a b --rounds 0", "ab a b --old-env X"] {
            assert!(parse(line).is_err(), "{line}");
        }
        let unknown = parse("ab a b --only nonsense").unwrap().rows().unwrap_err();
        assert!(unknown.to_string().contains("the rows are: latency_8B"), "{unknown}");
    }

    #[test]
    fn each_side_has_its_installation_and_its_variables() {
        let args = parse("ab worktree worktree --new-env NTBRING_SPIN=7").unwrap();
        let sides = Pair { old: Side::Worktree, new: Side::Worktree };
        let places = Pair { old: PathBuf::from("/a"), new: PathBuf::from("/b") };
        let both = contestants(&args, &sides, &places);
        assert_eq!([both[0].name, both[1].name], [NAMES.old, NAMES.new]);
        assert_eq!(
            [&both[0].mpicc, &both[1].mpicc].map(|mpicc| mpicc.as_deref()),
            [Path::new("/a/bin/mpicc"), Path::new("/b/bin/mpicc")].map(Some)
        );
        assert!(both[0].env.is_empty() && both[1].env.len() == 1);
    }
}
