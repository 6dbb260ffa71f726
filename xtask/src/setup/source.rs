//! Step 3: get MPICH's source as released by its authors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context, Result};

use super::apt;
use super::stamp::{sha256, Digest, Stamp};
use crate::{paths, process, ui};

/// The release that `netmod/` and `mpich-patches/` are written for.
pub const VERSION: &str = "4.0.2";

/// Debian's source package of MPICH.
const PACKAGE: &str = "mpich";
const PACKAGE_VERSION: &str = "4.0.2-3";
const TARBALL: &str = "mpich_4.0.2.orig.tar.xz";
const TARBALL_SHA256: &str = "b27039f964afeb6b8a3e009c56b441cbe368c26d6d6476ad3bb7190996875860";

/// An unpacked source tree that is never modified.
pub struct Pristine {
    /// Its top directory.
    pub dir: PathBuf,
    /// Identity of the source.
    pub id: String,
}

/// Returns the source tree of an earlier call, if there is one.
pub fn present() -> Option<Pristine> {
    let dir = paths::mpich().join("pristine");
    let id = Stamp::new("source").read()?;
    dir.is_dir().then_some(Pristine { dir, id })
}

/// Makes sure that there is a source tree. Without a `given` one, an existing tree is used, regardless of its origin;
/// otherwise Debian's source package is fetched.
pub fn ensure(given: Option<&Path>) -> Result<Pristine> {
    let Some(path) = given else {
        if let Some(pristine) = present() {
            return Ok(pristine);
        }
        let tarball = download()?;
        return adopt(debians(), |fresh| unpack(&tarball, fresh));
    };
    let path = path.canonicalize().with_context(|| format!("--mpich-src {}: not found", path.display()))?;
    let id = identify(&path)?;
    match present() {
        Some(pristine) if pristine.id == id => Ok(pristine),
        _ if path.is_dir() => {
            adopt(id, |fresh| ui::step("source: copying the given MPICH tree", || copy_tree(&path, fresh)))
        }
        _ => adopt(id, |fresh| unpack(&path, fresh)),
    }
}

/// Makes a new tree and puts it in place once it is complete.
fn adopt(id: String, make: impl FnOnce(&Path) -> Result<()>) -> Result<Pristine> {
    let dir = paths::mpich().join("pristine");
    let fresh = dir.with_extension("new");
    paths::remove(&fresh)?;
    make(&fresh)?;
    let stamp = Stamp::new("source");
    stamp.clear()?;
    paths::remove(&dir)?;
    fs::rename(&fresh, &dir).with_context(|| format!("cannot rename {}", fresh.display()))?;
    stamp.write(&id)?;
    Ok(Pristine { dir, id })
}

/// Returns the identity of Debian's source.
fn debians() -> String {
    Digest::of("source", 1).text(TARBALL_SHA256).finish()
}

fn identify(path: &Path) -> Result<String> {
    if path.is_dir() {
        check(path)?;
        let digest = Digest::of("tree", 1).text(&path.to_string_lossy());
        return Ok(digest.listing(path)?.finish());
    }
    Ok(match sha256(path)? {
        // A tarball that is identical to Debian's has the identity of Debian's source.
        sum if sum == TARBALL_SHA256 => debians(),
        sum => Digest::of("tarball", 1).text(&sum).finish(),
    })
}

fn download() -> Result<PathBuf> {
    let dir = paths::mpich().join("download");
    let tarball = dir.join(TARBALL);
    if tarball.exists() && sha256(&tarball)? == TARBALL_SHA256 {
        return Ok(tarball);
    }
    ui::step(&format!("source: fetching Debian's {PACKAGE} {PACKAGE_VERSION}"), || {
        // Files of an interrupted call are removed.
        paths::remove(&dir)?;
        fs::create_dir_all(&dir)?;
        let log = paths::logs().join("source.log");
        apt::download(PACKAGE, PACKAGE_VERSION, &dir, &log).context(
            "cannot fetch MPICH's source; with --mpich-src PATH you can give a source tree or tarball of \
                 MPICH 4.0.2 instead, such as http://deb.debian.org/debian/pool/main/m/mpich/mpich_4.0.2.orig.tar.xz",
        )?;
        let sum = sha256(&tarball)?;
        if sum != TARBALL_SHA256 {
            bail!("{} is not the expected file: its SHA-256 is {sum}, expected {TARBALL_SHA256}", tarball.display());
        }
        Ok(())
    })?;
    Ok(tarball)
}

fn unpack(tarball: &Path, fresh: &Path) -> Result<()> {
    ui::step("source: unpacking", || {
        let temporary = fresh.with_extension("unpacked");
        paths::remove(&temporary)?;
        fs::create_dir_all(&temporary)?;
        let log = paths::logs().join("source.log");
        let mut tar = Command::new("tar");
        tar.arg("xf").arg(tarball).arg("-C").arg(&temporary).arg("--no-same-owner");
        process::check_logged(&mut tar, &log)?;
        let top = top_of(&temporary).with_context(|| format!("{} is not a source tarball", tarball.display()))?;
        check(&top).with_context(|| format!("{} cannot be used", tarball.display()))?;
        fs::rename(&top, fresh).with_context(|| format!("cannot rename {}", top.display()))?;
        paths::remove(&temporary)
    })
}

/// Returns the single directory that a tarball was unpacked to.
fn top_of(dir: &Path) -> Result<PathBuf> {
    let mut entries = fs::read_dir(dir)?.flatten().map(|entry| entry.path());
    match (entries.next(), entries.next()) {
        (Some(only), None) if only.is_dir() => Ok(only),
        _ => bail!("expected one directory at its top"),
    }
}

/// Checks that this is a tree that can be built from; the error says why not.
fn check(tree: &Path) -> Result<()> {
    let version_file = tree.join("maint/version.m4");
    let text =
        fs::read_to_string(&version_file).with_context(|| format!("{} is no source tree of MPICH", tree.display()))?;
    match version_in(&text) {
        Some(VERSION) => {}
        Some(other) => bail!("{} is MPICH {other}; ntbring needs MPICH {VERSION}", tree.display()),
        None => bail!("{} does not contain the version of MPICH", version_file.display()),
    }
    if !tree.join("configure").is_file() {
        bail!(
            "{} has no configure script: a release of MPICH is needed, not a checkout of its repository",
            tree.display()
        );
    }
    if tree.join("config.status").exists() {
        bail!("{} has been configured in place: a clean tree is needed", tree.display());
    }
    Ok(())
}

fn version_in(text: &str) -> Option<&str> {
    let rest = text.split("[MPICH_VERSION_m4],[").nth(1)?;
    rest.split(']').next()
}

/// Copies a tree with all modification times: generated files must stay newer than the files that they were generated
/// from.
pub fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    paths::remove(to)?;
    let log = paths::logs().join("source.log");
    let mut cp = Command::new("cp");
    cp.args(["-a", "--reflink=auto"]).arg(from).arg(to);
    process::check_logged(&mut cp, &log)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(version: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("maint")).unwrap();
        let text = format!("m4_define([MPICH_VERSION_m4],[{version}])dnl\n");
        fs::write(dir.path().join("maint/version.m4"), text).unwrap();
        fs::write(dir.path().join("configure"), "").unwrap();
        dir
    }

    #[test]
    fn only_clean_releases_of_the_right_version_are_taken() {
        let good = tree(VERSION);
        check(good.path()).unwrap();
        fs::write(good.path().join("config.status"), "").unwrap();
        assert!(check(good.path()).unwrap_err().to_string().contains("in place"));

        let other = tree("4.1");
        let text = check(other.path()).unwrap_err().to_string();
        assert!(text.contains("is MPICH 4.1"), "{text}");

        let checkout = tree(VERSION);
        fs::remove_file(checkout.path().join("configure")).unwrap();
        let text = check(checkout.path()).unwrap_err().to_string();
        assert!(text.contains("no configure script"), "{text}");

        let nothing = tempfile::tempdir().unwrap();
        let text = check(nothing.path()).unwrap_err().to_string();
        assert!(text.contains("no source tree of MPICH"), "{text}");
    }
}
