//! The oldest glibc on which a tree runs.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::tree::{is_elf, Tree};
use crate::process;

/// Returns major and minor number of the newest version of glibc of which a program or library of the tree needs a
/// symbol.
pub fn needed(tree: &Tree) -> Result<(u32, u32)> {
    let mut newest = None;
    for file in tree.files()? {
        let file = tree.root.join(file);
        if !file.is_symlink() && is_elf(&file)? {
            newest = newest.max(of_symbols(&symbols(&file)?));
        }
    }
    newest.context("no file needs glibc")
}

fn symbols(file: &Path) -> Result<String> {
    process::output(Command::new("objdump").arg("-T").arg(file))
}

/// Returns the newest version in the output of `objdump -T`.
fn of_symbols(text: &str) -> Option<(u32, u32)> {
    let version = |word: &str| {
        let (major, minor) = word.strip_prefix("GLIBC_")?.split_once('.')?;
        Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
    };
    let words = text.split(|c: char| c.is_whitespace() || c == '(' || c == ')');
    words.filter_map(version).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_counts() {
        let text =
            "0000 DF *UND* 0000 (GLIBC_2.2.5) free\n0000 DF *UND* 0000  GLIBC_2.34  main\n0000 (GLIBC_PRIVATE) x\n";
        assert_eq!(of_symbols(text), Some((2, 34)));
        assert_eq!(of_symbols("0000 DF *UND* 0000 (GCC_3.0) x"), None);
    }
}
