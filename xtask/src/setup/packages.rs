//! Step 1: install the Debian packages that the build needs.

use std::collections::HashSet;
use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{bail, Context, Result};

use super::profile::Profile;
use crate::{paths, process, ui};

/// A package, and a program whose presence shows on systems other than Debian that the need is met.
struct Need {
    package: &'static str,
    program: Option<&'static str>,
}

const fn need(package: &'static str, program: &'static str) -> Need {
    Need { package, program: Some(program) }
}

/// Packages for all profiles: a compiler for MPICH and its suite, the tools that regenerate MPICH's build system after
/// the overlay, and libclang for bindgen.
const ALWAYS: &[Need] = &[
    need("gcc", "gcc"),
    Need { package: "libc6-dev", program: None },
    need("make", "make"),
    need("perl", "perl"),
    need("python3", "python3"),
    need("autoconf", "autoconf"),
    need("automake", "automake"),
    need("m4", "m4"),
    need("patch", "patch"),
    need("xz-utils", "xz"),
    Need { package: "libclang-dev", program: None },
];

/// Packages that `full` and `yaksa` add, for MPICH's C++ and Fortran bindings.
const FULL: &[Need] = &[need("g++", "g++"), need("gfortran", "gfortran")];

/// Makes sure that these packages are installed, too.
pub fn install(packages: &[&'static str]) -> Result<()> {
    let needs: Vec<Need> = packages.iter().map(|package| Need { package, program: None }).collect();
    have(&needs.iter().collect::<Vec<_>>())
}

/// Makes sure that all packages are installed. As root, installs the missing ones; other users are shown the command.
pub fn ensure(profile: Profile) -> Result<()> {
    let mut needs: Vec<&Need> = ALWAYS.iter().collect();
    if profile.has_all_languages() {
        needs.extend(FULL);
    }
    have(&needs)
}

fn have(needs: &[&Need]) -> Result<()> {
    if !on_path("dpkg-query") {
        return check_programs(needs);
    }
    let missing = missing(needs)?;
    if missing.is_empty() {
        return Ok(());
    }
    let install = format!("apt-get install -y --no-install-recommends {}", missing.join(" "));
    if !rustix::process::geteuid().is_root() {
        bail!(
            "these Debian packages are missing: {}\n\nRun this as root, then call again:\n\n    \
             apt-get update && {install}\n",
            missing.join(" ")
        );
    }
    ui::step(&format!("packages: {}", missing.join(" ")), || apply(&missing))
}

fn apply(missing: &[&str]) -> Result<()> {
    let log = paths::logs().join("packages.log");
    let install = || {
        let mut command = apt_get();
        command.args(["install", "-y", "--no-install-recommends"]).args(missing);
        command
    };
    // A system in use usually has package lists already; a fresh image does not.
    if process::run_logged(&mut install(), &log, None)?.success() {
        return Ok(());
    }
    process::check_logged(apt_get().arg("update"), &log)?;
    process::check_logged(&mut install(), &log)
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        // Another apt may be running: wait for its lock instead of failing.
        .args(["-o", "DPkg::Lock::Timeout=300"]);
    command
}

fn missing(needs: &[&Need]) -> Result<Vec<&'static str>> {
    let installed = installed(needs)?;
    Ok(needs.iter().map(|need| need.package).filter(|package| !installed.contains(*package)).collect())
}

fn installed(needs: &[&Need]) -> Result<HashSet<String>> {
    // dpkg-query's exit status is 1 when one of the packages is unknown: not an error here.
    let result = Command::new("dpkg-query")
        .args(["-W", "-f", "${Package} ${db:Status-Status}\n"])
        .args(needs.iter().map(|need| need.package))
        .output()
        .context("cannot run dpkg-query")?;
    Ok(String::from_utf8_lossy(&result.stdout)
        .lines()
        .filter_map(|line| line.strip_suffix(" installed"))
        .map(str::to_string)
        .collect())
}

/// Checks for the needed programs on a system other than Debian. Nothing is installed there, but missing programs are
/// named.
fn check_programs(needs: &[&Need]) -> Result<()> {
    let missing: Vec<_> = needs.iter().filter_map(|need| need.program).filter(|program| !on_path(program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    bail!(
        "these programs are missing: {} (and this is no Debian system, so nothing is installed automatically)",
        missing.join(", ")
    );
}

fn on_path(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| {
        env::split_paths(&path).any(|dir: std::path::PathBuf| Path::new(&dir).join(program).is_file())
    })
}
