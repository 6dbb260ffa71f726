//! MPICH's suite, configured and built against an MPI.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::mpi::Mpi;
use crate::setup::stamp::{Digest, Stamp};
use crate::setup::{remove, Profile};
use crate::{paths, process, ui};

/// A configured suite.
pub struct Suite {
    /// Where it is built.
    pub build: PathBuf,
    /// Where it comes from.
    pub source: PathBuf,
    /// Whether the MPI has the module mpi_f08.
    fortran_2008: bool,
}

/// Tests of the module mpi_f08, which the suite's own lists do not name.
const F08: &str = "f08";
const F08_ERRORS: &str = "errors/f08";

/// What kind of MPI it is built against.
pub struct Against<'a> {
    /// The MPI.
    pub mpi: &'a Mpi,
    /// A name for its directory.
    pub name: String,
    /// Which languages it has.
    pub profile: Profile,
}

/// Configures the suite, unless that was done for this MPI and this source.
pub fn configure(against: &Against, source: &Path, source_id: &str) -> Result<Suite> {
    let source = source.join("test/mpi");
    let build = paths::mpich().join(format!("testsuite-{}", against.name));
    let mut flags = vec![
        format!("--with-mpi={}", against.mpi.prefix().display()),
        format!("MPICC={}", against.mpi.mpicc().display()),
        format!("CC={}", against.mpi.mpicc().display()),
        // Without these it leaves out all that has threads, or messages of more than 2^31 bytes.
        "--enable-threads=multiple".to_string(),
        "--enable-large-tests".to_string(),
    ];
    if !against.profile.has_all_languages() {
        // The last two: even so configure stops without a C++ compiler, unless it is told that
        // there is none.
        let without = ["--disable-fortran", "--disable-cxx", "--disable-romio", "MPICXX=no", "CXX=no"];
        flags.extend(without.map(String::from));
    } else {
        // Without these gfortran does not compile the suite's Fortran tests: of MPI_Alloc_mem, and of one call with
        // several types.
        let fortran = "-fcray-pointer -fallow-argument-mismatch";
        flags.extend([format!("FFLAGS={fortran}"), format!("FCFLAGS={fortran}")]);
        for (variable, name) in [("MPICXX", "mpicxx"), ("MPIF77", "mpif77"), ("MPIFC", "mpif90")] {
            flags.push(format!("{variable}={}", against.mpi.wrapper(name).display()));
        }
    }
    let mut digest = Digest::of("suite", 1).text(source_id).text(&format!("{flags:?}"));
    let header = against.mpi.prefix().join("include/mpi.h");
    if header.exists() {
        digest = digest.file(&header)?;
    }
    let digest = digest.finish();

    let stamp = Stamp::new(&format!("testsuite-{}", against.name));
    if !build.is_dir() {
        stamp.clear()?;
    }
    stamp.unless_held(&digest, || {
        ui::step("configure: MPICH's test suite", || {
            remove(&build)?;
            fs::create_dir_all(&build)?;
            let log = paths::logs().join(format!("testsuite-{}.log", against.name));
            remove(&log)?;
            let mut command = Command::new(source.join("configure"));
            command.current_dir(&build).args(&flags);
            process::check_logged(&mut command, &log)
        })
    })?;
    Ok(Suite { build, source, fortran_2008: against.profile.has_all_languages() })
}

impl Suite {
    /// The directories in the order of the suite's own list, which knows for what languages it was configured.
    pub fn directories(&self) -> Result<Vec<String>> {
        let file = self.build.join("testlist");
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let names = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        let known = names.filter(|name| !name.is_empty()).map(str::to_string);
        Ok(known.chain(self.fortran_2008.then(|| F08.to_string())).collect())
    }

    /// The lists of a directory: its own, and what it should name.
    pub fn lists<'a>(&self, dir: &'a str) -> Vec<&'a str> {
        let forgotten = F08_ERRORS.split('/').next() == Some(dir) && self.fortran_2008;
        [dir].into_iter().chain(forgotten.then_some(F08_ERRORS)).collect()
    }

    /// Compiles one program of a directory: some are in no list of what is to be made.
    pub fn build_one(&self, dir: &Path, program: &str) -> Result<()> {
        let mut make = Command::new("make");
        make.arg("-C").arg(dir).arg(program);
        process::run_logged(&mut make, &self.build.join("build.log"), None).map(drop)
    }

    /// Compiles the programs of some directories. A program that does not compile is no
    /// error here: its tests will fail.
    pub fn build(&self, dirs: &BTreeSet<String>, jobs: usize) -> Result<()> {
        let log = self.build.join("build.log");
        remove(&log)?;
        let make = |dir: &str, keep_going: bool| {
            let mut command = Command::new("make");
            command.arg(format!("-j{jobs}")).arg("-C").arg(self.build.join(dir));
            if keep_going {
                command.arg("-k");
            }
            command
        };
        for dir in ["util", "dtpools"] {
            process::check_logged(&mut make(dir, false), &log)?;
        }
        if dirs.contains(F08) {
            // The suite's configure leaves it out unless MPICH's own configure calls it.
            let mut library = make("util", false);
            library.args(["libmtest_f08.la", "libmtest_f08_la_OBJECTS=mtest_f08.lo"]);
            process::check_logged(&mut library, &log)?;
        }
        for dir in dirs {
            process::run_logged(&mut make(dir, true), &log, None)?;
        }
        Ok(())
    }
}
