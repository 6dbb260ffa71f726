//! `shmem_info`: describes the installation.

use anyhow::Result;
use ntbring_shmem_api::constants::{SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_VENDOR_STRING};
use ntbring_shmem_api::environment::VARIABLES;
use ntbring_shmem_api::functions;
use ntbshmem_tools::Installation;
use std::env;
use std::process::ExitCode;

const HELP: &str = "\
Describes the OpenSHMEM library of this installation.

Usage: shmem_info [OPTION]

  --variables           prints the environment variables only
  --functions           prints the prototypes of all functions
  --help                prints this text
";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("shmem_info: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    match env::args().nth(1).as_deref() {
        None => describe()?,
        Some("--variables") => variables(),
        Some("--functions") => functions().iter().for_each(|function| println!("{}", function.prototype)),
        Some("--help") => print!("{HELP}"),
        Some(other) => {
            eprintln!("shmem_info: there is no option {other}\n{HELP}");
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn describe() -> Result<()> {
    let installation = Installation::find()?;
    let prefix = installation.prefix.display();
    println!("Library:        {SHMEM_VENDOR_STRING} {}", env!("CARGO_PKG_VERSION"));
    println!("Specification:  OpenSHMEM {SHMEM_MAJOR_VERSION}.{SHMEM_MINOR_VERSION}, {} functions", functions().len());
    println!("Installed in:   {prefix}");
    println!("Compile with:   {prefix}/bin/oshcc, or {}", installation.compile_flags().join(" "));
    println!("Link with:      {}", installation.link_flags().join(" "));
    println!("Run with:       {prefix}/bin/oshrun -np N PROGRAM");
    println!("\nEnvironment variables (ntbring info --config lists those of the ring):");
    variables();
    Ok(())
}

fn variables() {
    VARIABLES.iter().for_each(|(name, meaning)| println!("  {name:24} {meaning}"));
}
