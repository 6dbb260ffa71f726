//! MPICH's test suite, configured and built with an MPI.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::mpi::Mpi;
use crate::setup::stamp::{Digest, Stamp};
use crate::setup::Profile;
use crate::{paths, process, ui};

/// A configured suite.
pub struct Suite {
    /// Its build directory.
    pub build: PathBuf,
    /// Its source directory.
    pub source: PathBuf,
    /// True if the MPI has the module mpi_f08.
    fortran_2008: bool,
}

/// The directory with tests of the module mpi_f08, which the suite's own lists do not contain.
const F08: &str = "f08";
const F08_ERRORS: &str = "errors/f08";

/// The MPI that the suite is built with.
pub struct Against<'a> {
    /// The MPI itself.
    pub mpi: &'a Mpi,
    /// Name of the suite's build directory for it.
    pub name: String,
    /// The profile that determines its languages.
    pub profile: Profile,
}

/// Configures the suite, unless that was done already for this MPI and this source.
pub fn configure(against: &Against, source: &Path, source_id: &str) -> Result<Suite> {
    let source = source.join("test/mpi");
    let build = paths::mpich().join(format!("testsuite-{}", against.name));
    let mut flags = vec![
        format!("--with-mpi={}", against.mpi.prefix().display()),
        format!("MPICC={}", against.mpi.mpicc().display()),
        format!("CC={}", against.mpi.mpicc().display()),
        // Without these options the suite omits all tests with threads or with messages of more than 2^31 bytes.
        "--enable-threads=multiple".to_string(),
        "--enable-large-tests".to_string(),
    ];
    if !against.profile.has_all_languages() {
        // The last two: without a C++ compiler configure stops even so, unless it is told that there is none.
        let without = ["--disable-fortran", "--disable-cxx", "--disable-romio", "MPICXX=no", "CXX=no"];
        flags.extend(without.map(String::from));
    } else {
        // Without these flags gfortran does not compile the suite's Fortran tests of MPI_Alloc_mem and of one procedure
        // that is called with several types.
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
            paths::remove(&build)?;
            fs::create_dir_all(&build)?;
            let log = paths::logs().join(format!("testsuite-{}.log", against.name));
            paths::remove(&log)?;
            let mut command = Command::new(source.join("configure"));
            command.current_dir(&build).args(&flags);
            process::check_logged(&mut command, &log)
        })
    })?;
    Ok(Suite { build, source, fortran_2008: against.profile.has_all_languages() })
}

impl Suite {
    /// Returns the directories in the order of the suite's own list, which depends on the languages that it was
    /// configured for.
    pub fn directories(&self) -> Result<Vec<String>> {
        let file = self.build.join("testlist");
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let names = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        let known = names.filter(|name| !name.is_empty()).map(str::to_string);
        Ok(known.chain(self.fortran_2008.then(|| F08.to_string())).collect())
    }

    /// Returns the lists of a directory: its own list, and lists that are missing in it.
    pub fn lists<'a>(&self, dir: &'a str) -> Vec<&'a str> {
        let forgotten = F08_ERRORS.split('/').next() == Some(dir) && self.fortran_2008;
        [dir].into_iter().chain(forgotten.then_some(F08_ERRORS)).collect()
    }

    /// Compiles one program of a directory, since some programs are not built by its default make target.
    pub fn build_one(&self, dir: &Path, program: &str) -> Result<()> {
        let mut make = Command::new("make");
        make.arg("-C").arg(dir).arg(program);
        process::run_logged(&mut make, &self.build.join("build.log"), None).map(drop)
    }

    /// Compiles the programs of some directories. A program that does not compile is not an error here: its tests will
    /// fail.
    pub fn build(&self, dirs: &BTreeSet<String>, jobs: usize) -> Result<()> {
        let log = self.build.join("build.log");
        paths::remove(&log)?;
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
            // The suite's configure leaves this library out unless it is called by MPICH's own configure.
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
