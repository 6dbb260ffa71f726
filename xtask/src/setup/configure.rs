//! Step 6: configuring MPICH.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Result};

use super::overlay::Overlaid;
use super::stamp::{Digest, Stamp};
use super::times::Snapshot;
use super::{remove, Profile};
use crate::{paths, process, ui};

/// A configured build directory.
pub struct Configured {
    /// Where to call make.
    pub dir: PathBuf,
    /// Changes when MPICH was configured anew.
    pub digest: String,
}

/// What makes a build short: yaksa alone takes ten minutes.
const DATALOOP: &str = "--with-datatype-engine=dataloop";
/// Each file would be compiled twice.
const SHARED_ONLY: &str = "--disable-static";
const C_ONLY: &[&str] = &[DATALOOP, SHARED_ONLY, "--disable-fortran", "--disable-cxx", "--disable-romio"];

/// What a profile leaves out, or does otherwise than MPICH by default.
fn profile_flags(profile: Profile) -> Vec<&'static str> {
    match profile {
        Profile::Quick => C_ONLY.to_vec(),
        Profile::NoShm => [C_ONLY, &["--with-ch4-shmmods=none"]].concat(),
        Profile::PerVci => [C_ONLY, &["--enable-thread-cs=per-vci"]].concat(),
        Profile::Asan => [C_ONLY, &["--enable-g=asan"]].concat(),
        Profile::Debug => [C_ONLY, &["--enable-g=dbg", "--enable-fast=O0"]].concat(),
        Profile::Full => vec![DATALOOP, SHARED_ONLY],
        Profile::Yaksa => vec![SHARED_ONLY],
    }
}

/// All that configure is told.
fn flags(profile: Profile, prefix: &Path) -> Vec<String> {
    let prefix = prefix.display();
    let mut flags = vec![
        format!("--prefix={prefix}"),
        "--with-device=ch4:ntbring".to_string(),
        format!("--with-ntbring={prefix}"),
        format!("MPICHLIB_LDFLAGS=-Wl,-rpath,{prefix}/lib"),
        // Regenerating is our business (see regenerate.rs), not make's.
        "--disable-maintainer-mode".to_string(),
    ];
    flags.extend(profile_flags(profile).iter().map(ToString::to_string));
    flags
}

/// Makes sure that the build directory of this profile is configured.
pub fn ensure(profile: Profile, source: &Overlaid, prefix: &Path) -> Result<Configured> {
    if prefix.to_string_lossy().contains(char::is_whitespace) {
        bail!("MPICH cannot be built below a directory with white space in its name: {}", paths::root().display());
    }
    let dir = paths::mpich().join(format!("build-{profile}"));
    let flags = flags(profile, prefix);
    let flags_digest = Digest::of("flags", 1).text(&format!("{flags:?}")).finish();
    let digest = Digest::of("configure", 1).text(&flags_digest).text(&source.structure).finish();
    let stamp = Stamp::new(&format!("configure-{profile}"));
    let flags_stamp = Stamp::new(&format!("flags-{profile}"));
    if !dir.is_dir() {
        stamp.clear()?;
    }
    stamp.unless_held(&digest, || {
        let name = format!("configure: MPICH, profile {profile} (about a minute)");
        ui::step(&name, || {
            // With other flags nothing of an old build may stay; with the same ones
            // configure changes what has to change, and make goes by that.
            if !flags_stamp.holds(&flags_digest) {
                flags_stamp.clear()?;
                remove(&dir)?;
            }
            let before = Snapshot::take(&dir)?;
            run(source, &dir, &flags, profile)?;
            before.restore_times(&dir, &source.dir)?;
            flags_stamp.write(&flags_digest)
        })
    })?;
    Ok(Configured { dir, digest })
}

fn run(source: &Overlaid, dir: &Path, flags: &[String], profile: Profile) -> Result<()> {
    fs::create_dir_all(dir)?;
    let log = paths::logs().join(format!("configure-{profile}.log"));
    remove(&log)?;
    let mut command = Command::new(source.dir.join("configure"));
    command.current_dir(dir).args(flags);
    // gfortran 10 and later refuse what MPICH's own Fortran sources do without these;
    // configure asks for them by name when it stops.
    if profile.has_all_languages() {
        command.args(["FFLAGS=-fallow-argument-mismatch", "FCFLAGS=-fallow-argument-mismatch"]);
    }
    process::check_logged(&mut command, &log)
}
