//! A tree for any directory, as an archive.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::tree::Tree;
use super::VERSION;
use crate::{paths, process};

/// Writes `ntbring-VERSION-x86_64.tar.xz`, which unpacks into a directory of that name.
pub fn make(tree: &Tree, to: &Path) -> Result<PathBuf> {
    let name = format!("ntbring-{VERSION}-{}", std::env::consts::ARCH);
    let file = to.join(format!("{name}.tar.xz"));
    pack(&tree.root, &name, &file)?;
    Ok(file)
}

/// Packs a directory under another name.
pub fn pack(dir: &Path, name: &str, file: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    tar.env("XZ_OPT", "-T0 -3").args(["--owner=0", "--group=0", "--sort=name", "-cJf"]).arg(file);
    tar.args(["--exclude-vcs", &format!("--transform=flags=r;s,^\\.,{name},"), "-C"]).arg(dir).arg(".");
    process::check_logged(&mut tar, &paths::logs().join("package.log"))
}
