//! Needs of a tree: the oldest glibc on which it runs, and other libraries of the system.

use std::path::Path;
use std::process::Command;

use anyhow::{bail, Context, Result};

use super::tree::{is_elf, Tree};
use crate::process;

/// Libraries of the system that packages may need: those of compilers, and parts of glibc.
const OF_SYSTEM: [&str; 11] = [
    "libc.so.6",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
    "libdl.so.2",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
    "libgcc_s.so.1",
    "libstdc++.so.6",
    "libgfortran.so.5",
    "libquadmath.so.0",
];

/// Returns major and minor number of the newest version of glibc of which a program or library of the tree needs a
/// symbol.
pub fn glibc(tree: &Tree) -> Result<(u32, u32)> {
    let mut newest = None;
    for file in tree.files()? {
        let file = tree.root.join(file);
        if !file.is_symlink() && is_elf(&file)? {
            newest = newest.max(newest_of(&objdump("-T", &file)?));
        }
    }
    newest.context("no file needs glibc")
}

/// Checks that the tree needs no library but its own and those of every system.
///
/// # Errors
///
/// Returns an error that names the first library that other systems may not have.
pub fn check_libraries(tree: &Tree) -> Result<()> {
    for name in tree.files()? {
        let file = tree.root.join(&name);
        if file.is_symlink() || !is_elf(&file)? {
            continue;
        }
        for library in libraries_of(&objdump("-p", &file)?) {
            if !OF_SYSTEM.contains(&library) && !tree.root.join("lib").join(library).exists() {
                bail!(
                    "{} needs {library}, which is neither in the tree nor on every system; MPICH's configure has found \
                     it on this one: remove its development package and target/mpich/build-*, then call again",
                    name.display()
                );
            }
        }
    }
    Ok(())
}

fn objdump(option: &str, file: &Path) -> Result<String> {
    process::output(Command::new("objdump").arg(option).arg(file))
}

/// Returns the newest version in the output of `objdump -T`.
fn newest_of(text: &str) -> Option<(u32, u32)> {
    let version = |word: &str| {
        let (major, minor) = word.strip_prefix("GLIBC_")?.split_once('.')?;
        Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
    };
    let words = text.split(|c: char| c.is_whitespace() || c == '(' || c == ')');
    words.filter_map(version).max()
}

/// Returns the libraries in the output of `objdump -p`.
fn libraries_of(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.trim_start().strip_prefix("NEEDED")).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_counts() {
        let text =
            "0000 DF *UND* 0000 (GLIBC_2.2.5) free\n0000 DF *UND* 0000  GLIBC_2.34  main\n0000 (GLIBC_PRIVATE) x\n";
        assert_eq!(newest_of(text), Some((2, 34)));
        assert_eq!(newest_of("0000 DF *UND* 0000 (GCC_3.0) x"), None);
    }

    #[test]
    fn libraries_are_in_the_dynamic_section() {
        let text =
            "Dynamic Section:\n  NEEDED               libntbring.so\n  NEEDED               libc.so.6\n  SONAME  x\n";
        assert_eq!(libraries_of(text).collect::<Vec<_>>(), ["libntbring.so", "libc.so.6"]);
    }
}
