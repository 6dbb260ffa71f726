//! Compilation of the programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::Result;
use walkdir::WalkDir;

use super::generate;
use super::programs::{directory, Compiler, Program};
use crate::setup::Installed;
use crate::{parallel, paths, process, ui};

/// Options for all C programs.
const C: &[&str] = &["-std=gnu11", "-Werror"];
/// Options for all programs.
const ALL: &[&str] = &["-O1", "-g", "-Wall", "-Wextra", "-pthread"];

/// Directory of the executables.
pub fn executables() -> PathBuf {
    paths::target().join("shmem-test/bin")
}

/// Compiles those programs that are older than any source or than the library's header.
pub fn all(installed: &Installed, programs: &[Program]) -> Result<()> {
    let rows = paths::target().join("shmem-test/rows");
    generate::write(&rows)?;
    let header = installed.mpi.prefix().join("include/shmem.h");
    let newest = [directory(), rows.clone()].iter().map(|dir| newest_below(dir)).chain([changed(&header)]).max();
    let newest = newest.flatten();
    let mut old: Vec<&Program> = programs.iter().filter(|program| changed(&executable(program)) <= newest).collect();
    old.sort_by(|a, b| a.name.cmp(&b.name));
    old.dedup_by(|a, b| a.name == b.name);
    if old.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(executables())?;
    let log = paths::target().join("shmem-test/compile.log");
    paths::remove(&log)?;
    ui::step(&format!("build: {} programs of tests/shmem", old.len()), || {
        let run = |_: usize, program: &&Program| process::check_logged(&mut compiler(installed, program, &rows), &log);
        parallel::run_all(&old, parallel::cores(), |_| false, run)
    })?;
    Ok(())
}

/// Returns the executable of a program.
pub fn executable(program: &Program) -> PathBuf {
    executables().join(&program.name)
}

/// Returns the call that compiles a program.
fn compiler(installed: &Installed, program: &Program, rows: &Path) -> Command {
    let bin = installed.mpi.prefix().join("bin");
    let (name, own): (&str, &[&str]) = match program.compiler {
        Compiler::C => ("oshcc", C),
        Compiler::Cxx => ("oshc++", &["-Werror"]),
        Compiler::Mpi => ("mpicc", C),
    };
    let mut command = Command::new(bin.join(name));
    command.args(ALL).args(own).arg("-I").arg(rows).arg(program.source()).arg("-o").arg(executable(program));
    command.args(&program.flags);
    if program.compiler == Compiler::Mpi {
        let lib = installed.mpi.prefix().join("lib");
        command.arg("-L").arg(&lib).arg(format!("-Wl,-rpath,{}", lib.display())).arg("-lntbshmem");
    }
    command
}

/// Returns the time of the latest change of a file; None if there is no such file.
fn changed(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).ok()?.modified().ok()
}

fn newest_below(dir: &Path) -> Option<SystemTime> {
    let files = WalkDir::new(dir).into_iter().flatten().filter(|entry| entry.file_type().is_file());
    files.filter_map(|entry| changed(entry.path())).max()
}
