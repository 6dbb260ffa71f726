//! The licences of everything that packages contain.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::tree::Tree;
use crate::{paths, process};

/// Files of MPICH's sources that packages contain, below `share/doc/ntbring`.
const OF_MPICH: [(&str, &str); 3] = [
    ("COPYRIGHT", "COPYRIGHT.mpich"),
    ("modules/hwloc/COPYING", "COPYING.hwloc"),
    ("modules/yaksa/COPYRIGHT", "COPYRIGHT.yaksa"),
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    repository: Option<String>,
    source: Option<String>,
}

/// Writes the licences of ntbring, of MPICH and its parts, and a list of the Rust libraries with theirs.
pub fn write(tree: &Tree) -> Result<()> {
    let to = tree.root.join("share/doc/ntbring");
    fs::create_dir_all(&to).with_context(|| format!("cannot make {}", to.display()))?;
    let copy = |from: std::path::PathBuf, name: &str| {
        fs::copy(&from, to.join(name)).with_context(|| format!("cannot copy {}", from.display()))
    };
    copy(paths::root().join("LICENSE"), "LICENSE")?;
    copy(paths::root().join("CHANGELOG.md"), "CHANGELOG.md")?;
    for (file, name) in OF_MPICH {
        let file = tree.mpich.join(file);
        if file.exists() {
            copy(file, name)?;
        }
    }
    let list = to.join("rust-libraries.txt");
    fs::write(&list, rust_libraries()?).with_context(|| format!("cannot write {}", list.display()))
}

/// Returns a line for each library from crates.io: name, version, licence, repository.
fn rust_libraries() -> Result<String> {
    let text = process::output(
        Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"])
            .current_dir(paths::root()),
    )?;
    let metadata: Metadata = serde_json::from_str(&text).context("cargo metadata prints something else")?;
    let of_others = metadata.packages.into_iter().filter(|package| package.source.is_some());
    let lines: BTreeSet<String> = of_others
        .map(|package| {
            let or = |text: Option<String>, other: &str| text.unwrap_or_else(|| other.to_string());
            let licence = or(package.license, "see its sources");
            format!("{} {}: {licence}, {}\n", package.name, package.version, or(package.repository, "-"))
        })
        .collect();
    Ok(lines.into_iter().collect())
}
