//! `oshcc` and `oshc++`: call the C or C++ compiler with the arguments that OpenSHMEM programs need. Under the name of a
//! C++ compiler (`oshc++`, `oshcxx`, `oshCC`) it calls that.

use anyhow::{Context, Result};
use ntbshmem_tools::{compiler_call, Installation};
use std::env;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

const HELP: &str = "\
Compiles and links OpenSHMEM programs: calls the compiler with these arguments and those that ntbring needs.

Usage: oshcc [ARGUMENTS OF THE COMPILER]...      C
       oshc++ [ARGUMENTS OF THE COMPILER]...     C++

  -show                 prints the call of the compiler instead of making it
  -compile-info         prints the arguments for compiling
  -link-info            prints the arguments for linking
  --help                prints this text

OSHCC_CC and OSHCXX_CXX name other compilers than cc and c++.
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("oshcc: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut args: Vec<String> = env::args().collect();
    let name = args.drain(..1).next().unwrap_or_default();
    let name = Path::new(&name).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_cxx = ["oshc++", "oshcxx", "oshCC", "oshCXX"].contains(&name.as_str());
    let (variable, default) = if is_cxx { ("OSHCXX_CXX", "c++") } else { ("OSHCC_CC", "cc") };
    let compiler = env::var(variable).unwrap_or_else(|_| default.to_string());
    let installation = Installation::find()?;
    let is = |names: &[&str]| args.first().is_some_and(|arg| names.contains(&arg.as_str()));
    if is(&["--help"]) {
        print!("{HELP}");
        return Ok(());
    }
    if is(&["-compile-info", "--showme:compile"]) {
        println!("{}", installation.compile_flags().join(" "));
        return Ok(());
    }
    if is(&["-link-info", "--showme:link"]) {
        println!("{}", installation.link_flags().join(" "));
        return Ok(());
    }
    let shows = |arg: &String| ["-show", "-showme", "--showme"].contains(&arg.as_str());
    let shown = args.iter().any(shows);
    args.retain(|arg| !shows(arg));
    let call = compiler_call(&installation, &compiler, &args);
    if shown {
        println!("{}", call.join(" "));
        return Ok(());
    }
    let (program, rest) = call.split_first().with_context(|| format!("{variable} is empty"))?;
    Err(Command::new(program).args(rest).exec()).with_context(|| format!("cannot run {program} ({variable})"))
}
