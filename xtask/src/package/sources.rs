//! The sources of everything that packages contain.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::tarball::pack;
use super::tree::Tree;
use super::VERSION;
use crate::{paths, process};

/// Writes `ntbring-VERSION-sources.tar.xz`: the repository, whose last commit counts, and MPICH as released, to which
/// the repository has the changes. The Rust libraries are named in `Cargo.lock`.
pub fn make(tree: &Tree, to: &Path) -> Result<PathBuf> {
    let name = format!("ntbring-{VERSION}-sources");
    let (dir, file) = (to.join(&name), to.join(format!("{name}.tar.xz")));
    let log = paths::logs().join("package.log");
    paths::remove(&dir)?;
    fs::create_dir_all(dir.join("ntbring")).with_context(|| format!("cannot make {}", dir.display()))?;
    let repository = to.join("repository.tar");
    let mut archive = Command::new("git");
    archive.current_dir(paths::root()).args(["archive", "--format=tar", "-o"]).arg(&repository).arg("HEAD");
    process::check_logged(&mut archive, &log)?;
    process::check_logged(Command::new("tar").arg("-xf").arg(&repository).arg("-C").arg(dir.join("ntbring")), &log)?;
    process::check_logged(Command::new("cp").arg("-a").arg(&tree.mpich).arg(dir.join("mpich")), &log)?;
    pack(&dir, &name, &file)?;
    paths::remove(&dir)?;
    paths::remove(&repository)?;
    Ok(file)
}
