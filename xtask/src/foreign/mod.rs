//! `cargo xtask foreign-test`: runs programs that were not written for ntbring: in other languages, built by other
//! tools, or not built here at all.

mod bench;
mod launchers;
mod mpi4py;
mod openshmem_sys;
mod programs;
mod shmem4py;
mod suites;
mod tree;

use std::fs;
use std::path::PathBuf;

use anyhow::{bail, Result};
use clap::Args;

use crate::setup::{self, SetupArgs};
use crate::ui::Tally;
use crate::{lock, paths};
use bench::Bench;

/// Command-line options.
#[derive(Args, Clone, Debug)]
pub struct ForeignArgs {
    /// Run only these: languages, tree, debian, shmem4py, openshmem-sys, ssh, slurm, rsmpi, coarrays, scalapack,
    /// mpi4py [default: all but mpi4py, which takes long]
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    setup: SetupArgs,
}

impl ForeignArgs {
    /// Returns the options with which CI runs: only programs that are built quickly.
    pub fn ci(setup: SetupArgs) -> Self {
        Self { names: ["languages", "tree", "debian", "shmem4py", "openshmem-sys"].map(str::to_string).to_vec(), setup }
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
    Kind { name: "shmem4py", usual: true, what: "shmem4py's own tests on 1 to 8 PEs", work: shmem4py::tests },
    Kind { name: "openshmem-sys", usual: true, what: "bindings for Rust", work: openshmem_sys::tests },
    Kind { name: "ssh", usual: true, what: "jobs that hydra starts by ssh", work: launchers::ssh },
    Kind { name: "slurm", usual: true, what: "jobs that Slurm starts", work: launchers::slurm },
    Kind { name: "rsmpi", usual: true, what: "the examples of the crate mpi", work: programs::rsmpi },
    Kind { name: "coarrays", usual: true, what: "the tests of Debian's OpenCoarrays", work: suites::coarrays },
    Kind { name: "scalapack", usual: true, what: "the tests of Debian's ScaLAPACK", work: suites::scalapack },
    Kind { name: "mpi4py", usual: false, what: "mpi4py's own tests on 1, 2, 4 and 5 ranks", work: mpi4py::tests },
];

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

/// Builds mpi4py with the installed MPI unless that was done before, and returns the interpreter that has it.
pub fn python_with_mpi4py(setup: &SetupArgs) -> Result<PathBuf> {
    let mpi = setup::ensure(setup)?.mpi;
    let place = paths::target().join("foreign/mpi4py");
    let _lock = lock::take(&paths::target().join("foreign/lock"))?;
    fs::create_dir_all(&place)?;
    let bench = Bench { mpi, setup: setup.clone(), place, tally: Tally::default() };
    mpi4py::build(&bench).map(|(python, _)| python)
}
