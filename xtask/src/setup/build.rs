//! Steps 7 and 8: compile and install MPICH.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::configure::Configured;
use super::overlay::Overlaid;
use super::profile::Profile;
use super::stamp::{Digest, Stamp};
use crate::{paths, process, ui};

/// Debian's names of the libraries, which have the same ABI: programs of its packages look for these names.
const DEBIAN_NAMES: &[(&str, &str)] = &[
    ("libmpich.so.12", "libmpi.so.12"),
    ("libmpichfort.so.12", "libmpifort.so.12"),
    ("libmpichcxx.so.12", "libmpicxx.so.12"),
];

fn link_names(lib: &Path) -> Result<()> {
    for (name, target) in DEBIAN_NAMES.iter().filter(|(_, target)| lib.join(target).exists()) {
        paths::remove(&lib.join(name))?;
        std::os::unix::fs::symlink(target, lib.join(name))?;
    }
    Ok(())
}

/// Makes sure that MPICH is built and installed. Returns the digest of all inputs of the build.
pub fn ensure(
    profile: Profile,
    source: &Overlaid,
    configured: &Configured,
    header: &str,
    prefix: &Path,
    jobs: usize,
) -> Result<String> {
    let digest = Digest::of("build", 2).text(&configured.digest).text(&source.content).text(header).finish();
    let stamp = Stamp::new(&format!("build-{profile}"));
    if !prefix.join("bin/mpicc").exists() {
        stamp.clear()?;
    }
    stamp.unless_held(&digest, || {
        let log = paths::logs().join(format!("build-{profile}.log"));
        paths::remove(&log)?;
        let make = |args: &[&str]| {
            let mut command = Command::new("make");
            command.current_dir(&configured.dir).args(args);
            process::check_logged(&mut command, &log)
        };
        ui::step(&format!("build: MPICH, profile {profile} (minutes at first)"), || make(&[&format!("-j{jobs}")]))?;
        ui::step("install: MPICH", || {
            make(&["install"])?;
            link_names(&prefix.join("lib"))
        })
    })?;
    Ok(digest)
}
