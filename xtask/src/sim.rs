//! `cargo xtask sim`: builds the simulator and hands everything on to it. It is a crate of its own, since it needs the library, and
//! the library cannot be built before set-up has found what it needs.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Args;

use crate::{paths, process};

/// What is handed on.
#[derive(Args, Clone, Debug)]
#[command(disable_help_flag = true)]
pub struct SimArgs {
    /// `tables`, `papers`, `sweep ...`, `retry ...`, or `--help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    args: Vec<OsString>,
}

/// Builds it, with optimization, and runs it. The exit code is its own.
pub fn run(args: &SimArgs) -> Result<ExitCode> {
    let mut command = Command::new("cargo");
    // The directory stays the user's: files are named from there.
    command.args(["run", "--quiet", "--profile", "sim", "--package", "ntbring-sim", "--manifest-path"]);
    command.arg(paths::root().join("Cargo.toml")).arg("--target-dir").arg(paths::target()).arg("--").args(&args.args);
    let outcome = process::run_shown(&mut command, None)?;
    let code = outcome.status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}
