//! `cargo xtask foreign-test`: runs programs that were not written for ntbring: in other languages, built by other
//! tools, or not built here at all.

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

/// Command-line options.
#[derive(Args, Clone, Debug)]
pub struct ForeignArgs {
    /// Run only these: languages, tree, debian, ssh, slurm, rsmpi, coarrays, scalapack, mpi4py [default: all but
    /// mpi4py, which takes long]
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    setup: SetupArgs,
}

impl ForeignArgs {
    /// Returns the options with which CI runs: only programs that are built quickly.
    pub fn ci(setup: SetupArgs) -> Self {
        Self { names: ["languages", "tree", "debian"].map(str::to_string).to_vec(), setup }
    }
}

/// A group of programs.
struct Kind {
    name: &'static str,
    /// True if the group runs by default.
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

/// The state of the tests: the directory in which programs are built and run, and their results.
struct Bench {
    mpi: Mpi,
    setup: SetupArgs,
    /// Directory for the files of the current group.
    place: PathBuf,
    tally: Tally,
}

/// Runs the command; the caller prints the tally.
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
    /// Returns the path of a log of the current group.
    fn log(&self, name: &str) -> PathBuf {
        self.place.join(format!("{}.log", name.replace([' ', '/'], "-")))
    }

    /// Runs one test. It passes if the command succeeds and, if `wanted` is given, prints it as a line.
    fn test(&mut self, name: &str, command: &mut Command, limit: Duration, wanted: Option<&str>) -> Result<bool> {
        self.judged(name, command, limit, 1, |text| {
            let wanted = wanted.filter(|wanted| !text.lines().any(|line| line.trim() == *wanted))?;
            Some(format!("it did not print {wanted:?}"))
        })
    }

    /// Runs one test. It passes if, in one of the allowed number of tries, the command succeeds and there is no
    /// complaint about its output.
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

    /// Returns a call of mpiexec on `hosts` hosts of one rank each.
    fn mpiexec(&self, hosts: usize) -> Command {
        self.mpi.run(&Layout::spread(hosts, hosts), &[])
    }

    /// Returns a call of mpiexec on these hosts, for a program that was linked with Debian's mpich.
    fn exec(&self, hosts: &str, ranks: u32) -> Command {
        let mut command = Command::new(self.tool("ntbring"));
        command.args(["exec", "--", "mpiexec", "-launcher", "fork", "-hosts", hosts, "-n", &ranks.to_string()]);
        command
    }

    /// Returns the directory of the sources of ntbring's own programs.
    fn sources(&self) -> PathBuf {
        paths::root().join("tests/foreign")
    }

    /// Returns the path of a program of the installation.
    fn tool(&self, name: &str) -> PathBuf {
        self.mpi.prefix().join("bin").join(name)
    }
}

/// Makes an empty directory, replacing an old one.
fn fresh(dir: &Path) -> Result<PathBuf> {
    remove(dir)?;
    fs::create_dir_all(dir)?;
    Ok(dir.to_path_buf())
}
