//! `oshrun`: runs OpenSHMEM programs, by mpiexec of the same installation.

use anyhow::{bail, Context, Result};
use ntbshmem_tools::{launcher_args, Installation};
use std::env;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

const HELP: &str = "\
Runs an OpenSHMEM program.

Usage: oshrun -np N [OPTIONS] PROGRAM [ARGUMENTS]... [: -np N [OPTIONS] PROGRAM ...]

  -np N                 number of PEs
  -hosts H1,H2,...      hosts of the ring in their order; H:K for K PEs of a host
  -launcher fork        all hosts are emulated on this machine, under any names
  -x NAME[=VALUE]       passes on an environment variable, or sets it
  --help                prints this text

All other options are those of mpiexec (mpiexec -help).
On 4 emulated hosts: oshrun -launcher fork -hosts h0,h1,h2,h3 -np 4 ./program
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("oshrun: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    if args.first().is_some_and(|arg| ["--help", "-help", "-h"].contains(&arg.as_str())) {
        print!("{HELP}");
        return Ok(());
    }
    if args.is_empty() {
        bail!("which program? See oshrun --help");
    }
    let mpiexec = Installation::find()?.prefix.join("bin/mpiexec");
    let error = Command::new(&mpiexec).args(launcher_args(&args)?).exec();
    Err(error).with_context(|| format!("cannot run {}", mpiexec.display()))
}
