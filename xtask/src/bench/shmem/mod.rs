//! `cargo xtask bench shmem` and `shmem-paper`: the OpenSHMEM library.
//!
//! | module | holds |
//! |---|---|
//! | `rows` | the programs of `benches/shmem`, placements, names of rows |
//! | `libraries` | the libraries that are compared, and running them |
//! | `table` | the comparison |
//! | `paper`, `sizes`, `verdict` | the experiments of the paper on OpenSHMEM over an NTB ring, and its figures beside ours |

mod libraries;
mod paper;
mod rows;
mod sizes;
mod table;
mod verdict;

use std::path::PathBuf;

use anyhow::{bail, Result};
use clap::Args;

use super::compare;
use super::disturbance::Watch;
use super::machine;
use super::stored::Stored;
use crate::mpi::Mpi;
use crate::setup::{self, SetupArgs};
use crate::{paths, process, ui};
use libraries::{Budget, Library, Runner};
use rows::{Group, Placement, Program};

/// Options of both commands.
#[derive(Args, Clone, Debug)]
pub struct ShmemArgs {
    /// Rounds, each of which runs every library once; medians are shown
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,

    /// Spend less time on each row, for a first look
    #[arg(long)]
    quick: bool,

    /// Measure what is installed in this directory, and set up nothing
    #[arg(long, value_name = "DIR")]
    installed: Option<PathBuf>,

    #[command(flatten)]
    setup: SetupArgs,
}

impl ShmemArgs {
    fn mpi(&self) -> Result<Mpi> {
        let mpi = match &self.installed {
            Some(prefix) => Mpi::of_prefix(&std::path::absolute(prefix)?),
            None => setup::ensure(&self.setup)?.mpi,
        };
        if !mpi.prefix().join("lib/libntbshmem.so").exists() {
            bail!("there is no lib/libntbshmem.so in {}", mpi.prefix().display());
        }
        Ok(mpi)
    }

    fn budget(&self) -> Budget {
        if self.quick {
            Budget { row: 0.05, limit: 20 }
        } else {
            Budget { row: 0.2, limit: 60 }
        }
    }
}

/// Options of `bench shmem`.
#[derive(Args, Clone, Debug)]
pub struct CompareArgs {
    /// Run only rows whose name contains this, such as near_put_8B, far_, barrier or 4pes
    #[arg(long, value_name = "ROW")]
    only: Option<String>,

    #[command(flatten)]
    shared: ShmemArgs,
}

/// Compares the OpenSHMEM library with others, in turn, and stores the figures in `target/bench/shmem.json`.
pub fn run(args: &CompareArgs) -> Result<()> {
    let groups = rows::groups(args.only.as_deref());
    if groups.is_empty() {
        bail!("no row has a name that contains \"{}\"; rows: {}", args.only.as_deref().unwrap_or_default(), names());
    }
    let mpi = args.shared.mpi()?;
    let cores = machine::cores();
    let mut machine = machine::describe(&cores);
    let (mut libraries, mut notes) = libraries::all(&mpi);
    let mut runner = Runner::new(paths::target().join("bench/shmem"), cores, args.shared.budget())?;
    ui::step("compiling the benchmarks", || compile(&mut libraries, &groups, &runner, &mut notes))?;
    println!("\n{}", machine::shown(&machine, &[]));
    for one in &libraries {
        let command = one.command(Program::Pair, Placement::Hosts(2), &runner.dir);
        println!("{}: {}\n  {}", one.name, one.what, process::shown(&command));
    }
    println!();
    machine::warn(&machine);

    let watch = Watch::start();
    let rounds = usize::from(args.shared.rounds);
    for group in &groups {
        let mut takers: Vec<Library> = libraries.iter().filter(|one| one.takes_part(group)).cloned().collect();
        for round in 0..rounds {
            // Each round begins with another library, so that none always follows the same one.
            takers.rotate_left(usize::from(round > 0));
            let name = format!("{}: round {} of {rounds}", group.describe(), round + 1);
            ui::step(&name, || takers.iter().try_for_each(|one| runner.run(one, group, one.name, &[])))?;
        }
    }
    if let Some(disturbance) = watch.end() {
        machine.lines.push(("while measuring".to_string(), disturbance.describe()));
        machine.warnings.extend(disturbance.warning());
    }

    let sections = table::sections(&runner.figures, &groups);
    for (title, entries) in &sections {
        println!("\n{title}:\n{}", compare::table(entries));
    }
    println!(
        "\nmedians of {rounds} rounds, the libraries in turn; ratio: ours over the peer's, the better one of several; \
         spread: of the rounds, ours and the peer's\n"
    );
    notes.extend(runner.failures.values().cloned());
    notes.iter().for_each(|note| println!("{note}"));
    machine::warn(&machine);
    let file = paths::target().join("bench/shmem.json");
    let (figures, ours_failed) = (runner.figures, runner.ours_failed);
    let stored = Stored {
        machine,
        mpis: Vec::new(),
        rounds,
        quick: args.shared.quick,
        figures,
        states: Default::default(),
        notes,
    };
    let entries: Vec<_> = sections.iter().flat_map(|(_, entries)| entries).collect();
    stored.write_with(&file, Some(("entries", serde_json::to_value(entries)?)))?;
    println!("figures: {}", paths::shown(&file));
    if ours_failed {
        bail!("ntbring's OpenSHMEM failed a benchmark: see above");
    }
    Ok(())
}

/// Runs the experiments of the paper; the text is also stored in `target/bench/shmem-paper.txt`.
pub fn run_paper(args: &ShmemArgs) -> Result<()> {
    let mpi = args.mpi()?;
    paper::run(&mpi, usize::from(args.rounds), args.budget())
}

/// Compiles the programs that the groups need. A library other than ours whose compiler fails is left out.
fn compile(libraries: &mut Vec<Library>, groups: &[Group], runner: &Runner, notes: &mut Vec<String>) -> Result<()> {
    let mut programs: Vec<Program> = groups.iter().map(|group| group.program).chain([Program::Pair]).collect();
    programs.sort();
    programs.dedup();
    let mut kept = Vec::new();
    for one in libraries.drain(..) {
        let compiled = programs.iter().try_for_each(|program| one.compile(*program, &runner.dir));
        match compiled {
            Err(error) if one.name.starts_with("oshmem") && !process::interrupted() => {
                notes.push(format!("{}: {error:#}: skipped", one.name));
            }
            other => {
                other?;
                kept.push(one);
            }
        }
    }
    *libraries = kept;
    Ok(())
}

fn names() -> String {
    let shown = |group: &Group| group.rows.iter().map(|row| group.shown(row)).collect::<Vec<_>>();
    rows::groups(None).iter().flat_map(shown).collect::<Vec<_>>().join(" ")
}
