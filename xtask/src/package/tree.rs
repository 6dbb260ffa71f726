//! The tree that all packages contain.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use walkdir::WalkDir;

use super::{licences, needs};
use crate::setup::{self, SetupArgs};
use crate::{install, paths, process, ui};

/// The module file of a tree.
pub const MODULE: &str = "share/modulefiles/ntbring";

/// A tree that can be moved, with what packages add to an installation.
pub struct Tree {
    /// Its directory.
    pub root: PathBuf,
    /// Sources of MPICH as its authors have released them.
    pub mpich: PathBuf,
}

/// Makes the tree, in `target/packages/tree`.
pub fn make(args: &SetupArgs) -> Result<Tree> {
    let installed = setup::ensure(args)?;
    let root = paths::target().join("packages/tree");
    install::copy_movable(installed.mpi.prefix(), &root)?;
    let tree = Tree { root, mpich: installed.source };
    ui::step("package: strip, man pages, completions, licences", || {
        needs::check_libraries(&tree)?;
        strip(&tree.root)?;
        describe_tool(&tree.root)?;
        write_module(&tree.root)?;
        licences::write(&tree)
    })?;
    Ok(tree)
}

impl Tree {
    /// Returns the paths of all files and links relative to the root, in order.
    pub fn files(&self) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in WalkDir::new(&self.root).sort_by_file_name() {
            let entry = entry?;
            if !entry.file_type().is_dir() {
                files.push(entry.path().strip_prefix(&self.root)?.to_path_buf());
            }
        }
        Ok(files)
    }
}

/// Returns true if a file is a program or a library.
pub fn is_elf(file: &Path) -> Result<bool> {
    use std::io::Read;
    let mut magic = [0; 4];
    let mut open = fs::File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(open.read_exact(&mut magic).is_ok() && magic == *b"\x7fELF")
}

/// Removes what only debuggers need.
fn strip(root: &Path) -> Result<()> {
    let log = paths::logs().join("package.log");
    paths::remove(&log)?;
    for entry in WalkDir::new(root) {
        let entry = entry?;
        if entry.file_type().is_file() && is_elf(entry.path())? {
            process::check_logged(Command::new("strip").arg("--strip-unneeded").arg(entry.path()), &log)?;
        }
    }
    Ok(())
}

/// Writes the man pages of `ntbring`, and completions for the shells.
fn describe_tool(root: &Path) -> Result<()> {
    let tool = root.join("bin/ntbring");
    let man = root.join("share/man/man1");
    fs::create_dir_all(&man).with_context(|| format!("cannot make {}", man.display()))?;
    process::output(Command::new(&tool).arg("describe").arg("man").arg(&man))?;
    for (shell, file) in [
        ("bash", "share/bash-completion/completions/ntbring"),
        ("zsh", "share/zsh/site-functions/_ntbring"),
        ("fish", "share/fish/vendor_completions.d/ntbring.fish"),
    ] {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap_or(root)).with_context(|| format!("cannot make {}", file.display()))?;
        let text = process::output(Command::new(&tool).arg("describe").arg(shell))?;
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// Returns a module file, for Environment Modules and Lmod, of the tree at `root`: a path, or an expression of Tcl.
pub fn module(root: &str) -> String {
    format!(
        "#%Module1.0\nmodule-whatis \"ntbring: MPI and OpenSHMEM\"\nconflict mpi\nset root {root}\n\
         prepend-path PATH $root/bin\nprepend-path LD_LIBRARY_PATH $root/lib\n\
         prepend-path PKG_CONFIG_PATH $root/lib/pkgconfig\nprepend-path MANPATH $root/share/man\n\
         prepend-path CMAKE_PREFIX_PATH $root\n"
    )
}

/// Writes the module file, which finds the tree that it is in.
fn write_module(root: &Path) -> Result<()> {
    let file = root.join(MODULE);
    let dir = file.parent().unwrap_or(root);
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let above = "[file dirname [file dirname [file dirname [file normalize $ModulesCurrentModulefile]]]]";
    fs::write(&file, module(above)).with_context(|| format!("cannot write {}", file.display()))
}
