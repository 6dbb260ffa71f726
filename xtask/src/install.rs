//! `cargo xtask install --prefix DIR`: installs the result of set-up as a tree that can be moved and packed.
//!
//! The tree that set-up makes contains its absolute path: in the compiler wrappers, in the pkg-config file, and in the
//! run paths of libraries. In the copy all of these are relative to the file that contains them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context, Result};
use clap::Args;
use walkdir::WalkDir;

use crate::setup::{self, packages, SetupArgs};
use crate::{paths, process, ui};

/// Command-line options.
#[derive(Args, Clone, Debug)]
pub struct InstallArgs {
    /// Directory to install in: empty, new, or with an earlier installation
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,

    #[command(flatten)]
    setup: SetupArgs,
}

/// A file that marks a directory as an earlier installation, which may be replaced.
const MARK: &str = "bin/ntbring";

/// The line with which a compiler wrapper finds the tree that it is in.
const WRAPPER_PREFIX: &str = r#"prefix=$(CDPATH= cd -- "$(dirname -- "$(readlink -f -- "$0")")/.." && pwd)"#;
/// The line with which a pkg-config file finds the tree that it is in.
const PKGCONFIG_PREFIX: &str = "prefix=${pcfiledir}/../..";

/// Man pages for the tools of MPICH that have neither a man page nor `--help`.
const MANUAL: [(&str, &str); 3] = [
    ("mpichversion", include_str!("install/mpichversion.1")),
    ("mpivars", include_str!("install/mpivars.1")),
    ("parkill", include_str!("install/parkill.1")),
];

/// Runs the command.
pub fn run(args: &InstallArgs) -> Result<()> {
    let to = into(&args.prefix, &args.setup)?;
    println!(
        "\n    export PATH={}/bin:$PATH\n\nThe tree can be moved; programs linked earlier look for it at its old path.",
        to.display()
    );
    Ok(())
}

/// Sets up if needed, installs, and returns the absolute path of the installation.
pub fn into(prefix: &Path, setup: &SetupArgs) -> Result<PathBuf> {
    let installed = setup::ensure(setup)?;
    let from = installed.mpi.prefix().to_path_buf();
    let to = std::path::absolute(prefix)?;
    check_place(&from, &to)?;
    copy_movable(&from, &to)?;
    Ok(to)
}

/// Copies the installation `from` to `to` as a tree that can be moved, replacing an earlier installation.
pub fn copy_movable(from: &Path, to: &Path) -> Result<()> {
    packages::install(&["patchelf"])?;
    ui::step(&format!("install: into {}", to.display()), || {
        // The copy is made beside the old tree, so that a failure leaves the old tree intact.
        let temporary = to.with_extension("new");
        paths::remove(&temporary)?;
        copy(from, &temporary)?;
        relocate(from, &temporary)?;
        write_manual(&temporary)?;
        paths::remove(to)?;
        fs::rename(&temporary, to).with_context(|| format!("cannot make {}", to.display()))
    })
}

fn check_place(from: &Path, to: &Path) -> Result<()> {
    if to.starts_with(paths::target()) || from.starts_with(to) {
        bail!("{} is a part of the set-up itself, or contains it", to.display());
    }
    if to.to_string_lossy().contains(char::is_whitespace) {
        bail!("MPICH's compiler wrappers do not work in a directory with white space in its name: {}", to.display());
    }
    let mut entries = match fs::read_dir(to) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", to.display())),
    };
    if entries.next().is_some() && !to.join(MARK).exists() {
        bail!("{} holds something else: give a directory that is empty or does not exist yet", to.display());
    }
    Ok(())
}

/// Copies a tree; symbolic links stay links. Files that only libtool reads are left out, since they contain absolute
/// paths.
fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in WalkDir::new(from) {
        let entry = entry?;
        let target = to.join(entry.path().strip_prefix(from)?);
        let kind = entry.file_type();
        let work = || -> Result<()> {
            if kind.is_dir() {
                fs::create_dir_all(&target)?;
            } else if kind.is_symlink() {
                std::os::unix::fs::symlink(fs::read_link(entry.path())?, &target)?;
            } else if entry.path().extension().is_none_or(|e| e != "la") {
                fs::copy(entry.path(), &target)?;
            }
            Ok(())
        };
        work().with_context(|| format!("cannot copy {}", entry.path().display()))?;
    }
    Ok(())
}

/// Adds the man pages that the tools of a tree lack.
fn write_manual(tree: &Path) -> Result<()> {
    let pages = tree.join("share/man/man1");
    fs::create_dir_all(&pages).with_context(|| format!("cannot make {}", pages.display()))?;
    for (tool, text) in MANUAL {
        let page = pages.join(format!("{tool}.1"));
        if tree.join("bin").join(tool).exists() && !page.exists() {
            fs::write(&page, text).with_context(|| format!("cannot write {}", page.display()))?;
        }
    }
    Ok(())
}

/// Replaces the absolute paths in a copied tree by relative ones.
fn relocate(from: &Path, tree: &Path) -> Result<()> {
    let old = from.to_str().context("the path of the set-up is not valid UTF-8")?;
    let log = paths::logs().join("install.log");
    paths::remove(&log)?;
    for entry in WalkDir::new(tree) {
        let entry = entry?;
        if !entry.file_type().is_file() {
            continue;
        }
        let (file, name) = (entry.path(), entry.path().strip_prefix(tree)?);
        let content = fs::read(file)?;
        if content.starts_with(b"\x7fELF") {
            let origin = if name.starts_with("lib") { "$ORIGIN" } else { "$ORIGIN/../lib" };
            let mut patchelf = Command::new("patchelf");
            process::check_logged(patchelf.args(["--set-rpath", origin]).arg(file), &log)?;
        } else if let Some(text) = String::from_utf8(content).ok().filter(|text| text.contains(old)) {
            let line = if name.starts_with("lib/pkgconfig") { PKGCONFIG_PREFIX } else { WRAPPER_PREFIX };
            let mode = fs::metadata(file)?.permissions().mode();
            fs::write(file, relative(&text, old, line)?).with_context(|| format!("cannot write {}", file.display()))?;
            fs::set_permissions(file, fs::Permissions::from_mode(mode))?;
        }
    }
    Ok(())
}

/// Returns a script's text with `prefix=OLD` replaced by `line`, and each later OLD by `${prefix}`.
fn relative(text: &str, old: &str, line: &str) -> Result<String> {
    let assignment = format!("prefix={old}\n");
    let (head, rest) = text
        .split_once(&assignment)
        .filter(|(head, _)| !head.contains(old))
        .context("a script contains its path before the line `prefix=`")?;
    Ok(format!("{head}{line}\n{}", rest.replace(old, "${prefix}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_finds_its_place_itself() {
        let text = "#! /bin/sh\nprefix=/a/b\nlibdir=/a/b/lib\nflags=\"-L/a/b/lib\"\n";
        let new = relative(text, "/a/b", "prefix=here").unwrap();
        assert_eq!(new, "#! /bin/sh\nprefix=here\nlibdir=${prefix}/lib\nflags=\"-L${prefix}/lib\"\n");
        assert!(relative("x=/a/b/lib\nprefix=/a/b\n", "/a/b", "").is_err());
        assert!(relative("x=/a/b/lib\n", "/a/b", "").is_err());
    }

    #[test]
    fn a_tool_that_is_there_gets_a_page_unless_it_has_one() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("bin")).unwrap();
        fs::create_dir_all(dir.path().join("share/man/man1")).unwrap();
        for tool in ["bin/mpivars", "bin/parkill", "share/man/man1/parkill.1"] {
            fs::write(dir.path().join(tool), "own").unwrap();
        }
        write_manual(dir.path()).unwrap();
        let page = |tool: &str| fs::read_to_string(dir.path().join(format!("share/man/man1/{tool}.1")));
        assert!(page("mpivars").unwrap().starts_with(".TH MPIVARS 1"));
        assert_eq!(page("parkill").unwrap(), "own");
        assert!(page("mpichversion").is_err());
    }

    #[test]
    fn nobody_elses_files_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let from = Path::new("/nowhere");
        assert!(check_place(from, dir.path()).is_ok());
        assert!(check_place(from, &dir.path().join("new")).is_ok());
        fs::write(dir.path().join("thesis.tex"), "").unwrap();
        assert!(check_place(from, dir.path()).unwrap_err().to_string().contains("something else"));
        fs::create_dir(dir.path().join("bin")).unwrap();
        fs::write(dir.path().join(MARK), "").unwrap();
        assert!(check_place(from, dir.path()).is_ok());
        assert!(check_place(from, Path::new("/tmp/a b")).is_err());
    }
}
