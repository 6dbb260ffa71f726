//! Step 2: build libntbring and install it with its header and its tool where MPICH looks for them, and the OpenSHMEM
//! library beside it. The build goes on beside steps 3 to 6, which occupy one core.

use std::fs;
use std::panic::resume_unwind;
use std::path::Path;
use std::process::Command;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{bail, Result};

use super::placement::install;
use super::shmem;
use super::stamp::{sha256, Digest};
use crate::{paths, process, ui};

/// Files that a build leaves in its release directory, and their places in an installation.
pub const PRODUCTS: [(&str, &str); 2] = [("libntbring.so", "lib/libntbring.so"), ("ntbring", "bin/ntbring")];

/// Cargo's packages of all that is installed.
pub const PACKAGES: [&str; 4] = ["ntbring", "ntbring-cli", "ntbshmem", "ntbshmem-tools"];

/// Installs the header, the only file of the library that configuring MPICH needs. Returns its digest.
pub fn header(prefix: &Path) -> Result<String> {
    let header = paths::root().join("include/ntbring.h");
    install(&header, &prefix.join("include/ntbring.h"))?;
    sha256(&header)
}

/// A build of the library that goes on beside other steps: cargo occupies the cores that they leave idle.
pub struct Building<'scope> {
    /// There was no library before.
    is_first: bool,
    thread: ScopedJoinHandle<'scope, (Result<bool>, Duration)>,
}

impl<'scope> Building<'scope> {
    /// Starts the build. It shows nothing until [`Building::end`], since the lines of other steps appear meanwhile.
    pub fn start<'env>(scope: &'scope Scope<'scope, 'env>) -> Self {
        let before = age_of_library();
        let thread = scope.spawn(move || {
            let start = Instant::now();
            // Cargo cannot be asked in advance if there is anything to build; the modification time of its output tells
            // afterwards.
            (build().map(|()| age_of_library() != before), start.elapsed())
        });
        Self { is_first: before.is_none(), thread }
    }

    /// Waits for the build and installs below `prefix` what has changed. Returns the digest of all products.
    pub fn end(self, prefix: &Path) -> Result<String> {
        let thread = self.thread;
        let join = || thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        if self.is_first {
            ui::step_timed("library: libntbring, built beside the steps above", join)?;
        } else {
            let (changed, elapsed) = join();
            if changed? {
                ui::done("library: libntbring has changed", elapsed);
            }
        }
        let release = paths::target().join("release");
        let mut digest = Digest::of("library", 1);
        for (from, to) in PRODUCTS {
            let from = release.join(from);
            install(&from, &prefix.join(to))?;
            digest = digest.file(&from)?;
        }
        Ok(shmem::ensure(prefix, digest)?.finish())
    }
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

fn build() -> Result<()> {
    let log = paths::logs().join("library.log");
    paths::remove(&log)?;
    let mut command = build_command(&paths::root());
    command.arg("--verbose");
    process::check_logged(&mut command, &log)?;
    check_lto(&fs::read_to_string(&log)?)
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
