//! `cargo xtask foreign-test`: programs that were not written for ntbring, in other languages, built by other tools, or
//! not built here at all.

mod launchers;
mod mpi4py;
mod programs;
mod suites;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{bail, Result};
use clap::Args;

use crate::mpi::{Layout, Mpi};
use crate::setup::{self, remove, SetupArgs};
use crate::ui::{self, Tally};
use crate::{lock, paths, process};

/// What can be chosen.
#[derive(Args, Clone, Debug)]
pub struct ForeignArgs {
    /// Only these: languages, tree, debian, ssh, slurm, rsmpi, coarrays, scalapack, mpi4py [default: all but mpi4py, which
    /// takes long]
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    setup: SetupArgs,
}

impl ForeignArgs {
    /// What CI runs: what is built in no time.
    pub fn ci(setup: SetupArgs) -> Self {
        Self { names: ["languages", "tree", "debian"].map(str::to_string).to_vec(), setup }
    }
}

/// A kind of programs.
struct Kind {
    name: &'static str,
    /// Whether it is run unless it is asked for.
    usual: bool,
    what: &'static str,
    work: fn(&mut Bench) -> Result<()>,
}

const KINDS: &[Kind] = &[
    Kind { name: "languages", usual: true, what: "C, C++ and Fortran, three ways", work: programs::languages },
    Kind { name: "tree", usual: true, what: "an installed tree, moved; pkg-config, CMake", work: tree::moved },
    Kind { name: "debian", usual: true, what: "binaries of Debian's packages", work: programs::debian },
    Kind { name: "ssh", usual: true, what: "jobs that hydra starts by ssh", work: launchers::ssh },
    Kind { name: "slurm", usual: true, what: "jobs that Slurm starts", work: launchers::slurm },
    Kind { name: "rsmpi", usual: true, what: "the examples of the crate mpi", work: programs::rsmpi },
    Kind { name: "coarrays", usual: true, what: "the tests of Debian's OpenCoarrays", work: suites::coarrays },
    Kind { name: "scalapack", usual: true, what: "the tests of Debian's ScaLAPACK", work: suites::scalapack },
    Kind { name: "mpi4py", usual: false, what: "mpi4py's own tests on 1, 2, 4 and 5 ranks", work: mpi4py::tests },
];

/// Where programs are built and run, and how they went.
struct Bench {
    mpi: Mpi,
    setup: SetupArgs,
    /// For files of the kind that is at work.
    place: PathBuf,
    tally: Tally,
}

/// The command; the caller prints the tally.
pub fn run(args: &ForeignArgs) -> Result<Tally> {
    for name in &args.names {
        if !KINDS.iter().any(|kind| kind.name == name) {
            let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
            bail!("there is no \"{name}\"; there are: {}", names.join(", "));
        }
    }
    if !args.setup.profile.has_all_languages() {
        bail!("the profile {} has no C++, Fortran and MPI-IO, which foreign programs use", args.setup.profile);
    }
    let mpi = setup::ensure(&args.setup)?.mpi;
    let top = paths::target().join("foreign");
    let _lock = lock::take(&top.join("lock"))?;
    let mut bench = Bench { mpi, setup: args.setup.clone(), place: top.clone(), tally: Tally::default() };
    for kind in KINDS {
        let wanted = if args.names.is_empty() { kind.usual } else { args.names.iter().any(|name| name == kind.name) };
        if !wanted {
            continue;
        }
        println!("{}: {}", kind.name, kind.what);
        bench.place = top.join(kind.name);
        fs::create_dir_all(&bench.place)?;
        (kind.work)(&mut bench)?;
    }
    Ok(bench.tally)
}

impl Bench {
    /// The log of a test, or of something else, of the kind that is at work.
    fn log(&self, name: &str) -> PathBuf {
        self.place.join(format!("{}.log", name.replace([' ', '/'], "-")))
    }

    /// One test: it passes if the command succeeds and, where something is wanted, prints it as a line.
    fn test(&mut self, name: &str, command: &mut Command, limit: Duration, wanted: Option<&str>) -> Result<bool> {
        self.judged(name, command, limit, 1, |text| {
            let wanted = wanted.filter(|wanted| !text.lines().any(|line| line.trim() == *wanted))?;
            Some(format!("it did not say {wanted:?}"))
        })
    }

    /// One test: it passes if the command succeeds, once in so many tries, and there is no complaint about what it prints.
    fn judged(
        &mut self,
        name: &str,
        command: &mut Command,
        limit: Duration,
        tries: u32,
        judge: impl Fn(&str) -> Option<String>,
    ) -> Result<bool> {
        let log = self.log(name);
        let mut start = Instant::now();
        let mut complaint = None;
        for left in (0..tries).rev() {
            remove(&log)?;
            start = Instant::now();
            let outcome = process::run_captured(command, &log, Some(limit))?;
            let text = fs::read(&log)?;
            complaint = match outcome.success() {
                true => judge(&String::from_utf8_lossy(&text)),
                false => Some(outcome.describe()),
            };
            match &complaint {
                Some(why) if left > 0 && !process::interrupted() => println!("  {name}: {why}; once more"),
                _ => break,
            }
        }
        match &complaint {
            None => {
                println!("  {name:<40} {:>12}", ui::seconds(start.elapsed()));
                self.tally.passed += 1;
            }
            Some(why) => {
                let what = format!("    FAILED {name}: {why}\n  {}", process::shown(command));
                println!("{}", ui::error_with_log(what, &log));
                self.tally.failed += 1;
                ui::failed(name);
            }
        }
        ui::flush();
        Ok(complaint.is_none())
    }

    /// mpiexec on so many hosts of one rank.
    fn mpiexec(&self, hosts: usize) -> Command {
        self.mpi.run(&Layout::spread(hosts, hosts), &[])
    }

    /// mpiexec on these hosts for a program that was linked with Debian's mpich.
    fn exec(&self, hosts: &str, ranks: u32) -> Command {
        let mut command = Command::new(self.tool("ntbring"));
        command.args(["exec", "--", "mpiexec", "-launcher", "fork", "-hosts", hosts, "-n", &ranks.to_string()]);
        command
    }

    /// The sources of our own.
    fn sources(&self) -> PathBuf {
        paths::root().join("tests/foreign")
    }

    /// A program of the installation.
    fn tool(&self, name: &str) -> PathBuf {
        self.mpi.prefix().join("bin").join(name)
    }
}

/// A fresh directory.
fn fresh(dir: &Path) -> Result<PathBuf> {
    remove(dir)?;
    fs::create_dir_all(dir)?;
    Ok(dir.to_path_buf())
}
