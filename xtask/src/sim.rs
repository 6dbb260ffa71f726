//! `cargo xtask sim`: builds the simulator and passes all arguments on to it. The simulator is a separate crate, since
//! it depends on the library, which cannot be built before set-up has found its dependencies.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Args;

use crate::{paths, process};

/// The arguments that are passed on.
#[derive(Args, Clone, Debug)]
#[command(disable_help_flag = true)]
pub struct SimArgs {
    /// `tables`, `papers`, `sweep ...`, `collectives ...`, `retry ...`, or `--help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    args: Vec<OsString>,
}

/// Builds the simulator with optimization and runs it. Returns the simulator's exit code.
pub fn run(args: &SimArgs) -> Result<ExitCode> {
    let mut command = Command::new("cargo");
    // The working directory stays the user's, so that relative file names keep their meaning.
    command.args(["run", "--quiet", "--profile", "sim", "--package", "ntbring-sim", "--manifest-path"]);
    command.arg(paths::root().join("Cargo.toml")).arg("--target-dir").arg(paths::target()).arg("--").args(&args.args);
    let outcome = process::run_shown(&mut command, None)?;
    let code = outcome.status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}
