//! Step 3: build libntbring and install it with its header and its tool where MPICH looks for them, and the OpenSHMEM
//! library beside it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Instant, SystemTime};

use anyhow::{bail, Result};

use super::placement::install;
use super::shmem;
use super::stamp::{sha256, Digest};
use crate::{paths, process, ui};

/// Files that a build leaves in its release directory, and their places in an installation.
pub const PRODUCTS: [(&str, &str); 2] = [("libntbring.so", "lib/libntbring.so"), ("ntbring", "bin/ntbring")];

/// Cargo's packages of all that is installed.
pub const PACKAGES: [&str; 4] = ["ntbring", "ntbring-cli", "ntbshmem", "ntbshmem-tools"];

/// Builds the library and installs it below `prefix` if it has changed. Returns the digest of the header and of the
/// library.
pub fn ensure(prefix: &Path) -> Result<(String, String)> {
    let release = paths::target().join("release");
    let log = paths::logs().join("library.log");
    build(&log)?;
    let mut digest = Digest::of("library", 1);
    for (from, to) in PRODUCTS {
        let from = release.join(from);
        install(&from, &prefix.join(to))?;
        digest = digest.file(&from)?;
    }
    digest = shmem::ensure(prefix, digest)?;
    let header = paths::root().join("include/ntbring.h");
    install(&header, &prefix.join("include/ntbring.h"))?;
    Ok((sha256(&header)?, digest.finish()))
}

/// Returns the call of cargo that builds the library and the tool of a source tree, in `target/release` of that tree.
pub fn build_command(root: &Path) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(root)
        .args(["build", "--release", "--lib", "--bins", "--package", "ntbring", "--target-dir"])
        .arg(root.join("target"));
    // Older source trees have the tool in the library's package.
    if root.join("tools/cli").is_dir() {
        command.args(["--package", "ntbring-cli"]);
    }
    if root.join("shmem").is_dir() {
        command.args(["--package", "ntbshmem", "--package", "ntbshmem-tools"]);
    }
    command
}

fn build(log: &Path) -> Result<()> {
    paths::remove(log)?;
    let mut command = build_command(&paths::root());
    command.arg("--verbose");
    // Cargo cannot be asked in advance if there is anything to build; the modification time of its output tells
    // afterwards.
    let before = age_of_library();
    if before.is_none() {
        ui::step("library: building libntbring", || process::check_logged(&mut command, log))?;
        return check_lto(&fs::read_to_string(log)?);
    }
    let start = Instant::now();
    process::check_logged(&mut command, log)?;
    check_lto(&fs::read_to_string(log)?)?;
    if age_of_library() != before {
        ui::done("library: libntbring has changed", start.elapsed());
    }
    Ok(())
}

/// Fails if cargo has compiled the library without link-time optimisation over all crates, which the path of small
/// messages needs: cargo omits it if the package has another type of library beside the `cdylib`.
fn check_lto(verbose: &str) -> Result<()> {
    let compiled = |line: &&str| line.contains("--crate-name ntbring ") && line.contains("--crate-type cdylib");
    match verbose.lines().filter(compiled).all(|line| line.contains("lto")) {
        true => Ok(()),
        false => bail!(
            "cargo has built libntbring.so without link-time optimisation: see Cargo.toml, [lib] and [profile.release]"
        ),
    }
}

fn age_of_library() -> Option<SystemTime> {
    let file = paths::target().join("release/libntbring.so");
    fs::metadata(file).ok()?.modified().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_without_link_time_optimisation_is_refused() {
        let line =
            "   Running `rustc --crate-name ntbring --edition=2021 src/lib.rs --crate-type cdylib -C opt-level=3";
        assert!(check_lto(&format!("{line} -C lto=thin`")).is_ok());
        assert!(check_lto(&format!("{line} -C codegen-units=1`")).is_err());
        // Nothing was compiled.
        assert!(check_lto("       Fresh ntbring v0.1.0").is_ok());
    }
}
