//! Compiles the programs of `benches`.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::bench::jobs::Program;
use crate::{paths, process};

/// Flags for every C compiler. Warnings are enabled, since they would point at the benchmarks' own code.
const FLAGS: &[&str] = &["-O2", "-Wall", "-Wextra"];
/// Libraries for every C program.
const LIBRARIES: &[&str] = &["-lm"];

/// Compiles sources of `benches`.
pub fn compile(cc: &Path, sources: &[&str], binary: &Path, log: &Path) -> Result<()> {
    compile_by(Command::new(cc), sources, binary, log)
}

/// Compiles sources of `benches` by a call of a compiler, to which the arguments are added.
pub fn compile_by(mut command: Command, sources: &[&str], binary: &Path, log: &Path) -> Result<()> {
    command.args(FLAGS).arg("-o").arg(binary);
    command.args(sources.iter().map(|source| paths::root().join("benches").join(source))).args(LIBRARIES);
    process::check_logged(&mut command, log)
}

/// Builds a program that is a crate of the workspace.
pub fn build(program: Program, log: &Path) -> Result<()> {
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "--package", program.binary(), "--manifest-path"]);
    command.arg(paths::root().join("Cargo.toml")).arg("--target-dir").arg(paths::target());
    process::check_logged(&mut command, log)
}
