//! Commands for OpenSHMEM programs.
//!
//! | file | command |
//! |---|---|
//! | `bin/oshcc.rs` | `oshcc` and `oshc++`, which compile and link programs |
//! | `bin/oshrun.rs` | `oshrun`, which runs them |
//! | `bin/shmem_info.rs` | `shmem_info`, which describes the installation |
//!
//! They find the installation from their own place in it, so that it can be moved.

use anyhow::{Context, Result};
use std::env;
use std::path::PathBuf;

/// The directories of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// The directory that contains all others.
    pub prefix: PathBuf,
}

impl Installation {
    /// Finds the installation that this command is part of.
    pub fn find() -> Result<Installation> {
        let own = env::current_exe().context("the place of this command is not known")?;
        let prefix = own.parent().and_then(|bin| bin.parent()).context("this command is not in an installation")?;
        Ok(Installation { prefix: prefix.to_path_buf() })
    }

    /// Returns the arguments with which a compiler finds the headers.
    pub fn compile_flags(&self) -> Vec<String> {
        vec![format!("-I{}", self.prefix.join("include").display())]
    }

    /// Returns the arguments with which a linker finds the library, and programs find it when they run.
    pub fn link_flags(&self) -> Vec<String> {
        let lib = self.prefix.join("lib").display().to_string();
        vec![format!("-L{lib}"), format!("-Wl,-rpath,{lib}"), "-lntbshmem".to_string()]
    }
}

/// A call of a compiler, in the order of its arguments.
///
/// The headers' directory comes first; the library is left out if nothing is linked.
pub fn compiler_call(installation: &Installation, compiler: &str, args: &[String]) -> Vec<String> {
    const NO_LINK: [&str; 6] = ["-c", "-E", "-S", "-M", "-MM", "-fsyntax-only"];
    // Without an input, as with `-v`, nothing is linked either.
    let has_input = args.iter().any(|arg| !arg.starts_with('-') || arg.starts_with("-l"));
    let links = has_input && !args.iter().any(|arg| NO_LINK.contains(&arg.as_str()));
    let mut call: Vec<String> = compiler.split_whitespace().map(str::to_string).collect();
    call.extend(installation.compile_flags());
    call.extend_from_slice(args);
    if links {
        call.extend(installation.link_flags());
    }
    call
}

/// The arguments of mpiexec for those of oshrun, which also has options of other launchers for SHMEM programs: `-x NAME`
/// and `-x NAME=VALUE` pass on a variable. Options end at the program.
pub fn launcher_args(args: &[String]) -> Result<Vec<String>> {
    let mut to = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg == "-x" {
            let variable = rest.next().context("-x needs a variable: -x NAME or -x NAME=VALUE")?;
            match variable.split_once('=') {
                Some((name, value)) => to.extend(["-genv", name, value].map(str::to_string)),
                None => to.extend(["-genvlist".to_string(), variable.clone()]),
            }
            continue;
        }
        to.push(match arg.as_str() {
            "--np" => "-np".to_string(),
            _ => arg.clone(),
        });
        // Options of mpiexec that have a value; anything else that is not an option is the program.
        const WITH_VALUE: &[&str] = &[
            "-n",
            "-np",
            "--np",
            "-host",
            "-hosts",
            "-f",
            "-hostfile",
            "-machinefile",
            "-ppn",
            "-wdir",
            "-launcher",
            "-launcher-exec",
            "-bootstrap",
            "-bootstrap-exec",
            "-rmk",
            "-bind-to",
            "-map-by",
            "-membind",
            "-iface",
            "-envlist",
            "-genvlist",
            "-configfile",
            "-path",
            "-arch",
            "-profile",
            "-prepend-pattern",
            "-outfile-pattern",
            "-errfile-pattern",
            "-nameserver",
            "-pmi-port",
            "-usize",
            "-topolib",
            "-ckpointlib",
            "-demux",
            "-hosts-per-node",
            "-localhost",
            "-s",
        ];
        const WITH_TWO: [&str; 2] = ["-env", "-genv"];
        let values = match arg.as_str() {
            option if WITH_VALUE.contains(&option) => 1,
            option if WITH_TWO.contains(&option) => 2,
            option if option.starts_with('-') => 0,
            _ => {
                // The program and its arguments; after a colon, options of another program follow.
                for arg in rest.by_ref() {
                    to.push(arg.clone());
                    if arg == ":" {
                        break;
                    }
                }
                continue;
            }
        };
        to.extend(rest.by_ref().take(values).cloned());
    }
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(args: &[&str]) -> Vec<String> {
        args.iter().map(|arg| arg.to_string()).collect()
    }

    #[test]
    fn the_library_is_linked_if_anything_is() {
        let installation = Installation { prefix: "/p".into() };
        let call = |args: &[&str]| compiler_call(&installation, "ccache gcc", &strings(args)).join(" ");
        assert_eq!(call(&["x.c", "-o", "x"]), "ccache gcc -I/p/include x.c -o x -L/p/lib -Wl,-rpath,/p/lib -lntbshmem");
        assert_eq!(call(&["-c", "x.c"]), "ccache gcc -I/p/include -c x.c");
        assert_eq!(call(&["-v"]), "ccache gcc -I/p/include -v");
    }

    #[test]
    fn options_of_other_launchers_become_those_of_mpiexec() {
        let args = |args: &[&str]| launcher_args(&strings(args)).map(|args| args.join(" "));
        assert_eq!(
            args(&["-np", "4", "-x", "A=1", "-x", "B", "-hosts", "h0,h1", "./p", "-x", "1"]).unwrap(),
            "-np 4 -genv A 1 -genvlist B -hosts h0,h1 ./p -x 1"
        );
        assert_eq!(
            args(&["--np", "2", "./p", "-x", ":", "-n", "1", "-x", "C", "./q"]).unwrap(),
            "-np 2 ./p -x : -n 1 -genvlist C ./q"
        );
        assert!(args(&["-x"]).is_err());
    }
}
