//! The licences of everything that packages contain.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::tree::Tree;
use crate::setup::library::PACKAGES;
use crate::{paths, process};

/// Files of MPICH's sources, and their names below `share/doc/ntbring`.
const OF_MPICH: [(&str, &str); 4] = [
    ("COPYRIGHT", "COPYRIGHT.mpich"),
    ("modules/hwloc/COPYING", "COPYING.hwloc"),
    ("modules/json-c/COPYING", "COPYING.json-c"),
    ("modules/yaksa/COPYRIGHT", "COPYRIGHT.yaksa"),
];

/// The file that Debian's policy demands: it names the licence of each part.
const COPYRIGHT: &str = "\
ntbring is distributed under the MIT licence: LICENSE.
MPICH 4.0.2, which it contains with changes: COPYRIGHT.mpich. Parts of MPICH: hwloc, COPYING.hwloc;
json-c, COPYING.json-c; yaksa, COPYRIGHT.yaksa.
Rust libraries that are linked in: rust-libraries.txt names each with its licence, rust-licences.txt has the texts.
Rust's standard library: MIT or Apache 2.0, https://github.com/rust-lang/rust.
The sources of ntbring and MPICH are in the archive ntbring-VERSION-sources.tar.xz, which is made with the packages.
";

/// Beginnings of the names of files with licences, in capital letters.
const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

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
    manifest_path: PathBuf,
}

/// Writes the licences of ntbring, of MPICH and its parts, and those of the Rust libraries with a list of them.
pub fn write(tree: &Tree) -> Result<()> {
    let to = tree.root.join("share/doc/ntbring");
    fs::create_dir_all(&to).with_context(|| format!("cannot make {}", to.display()))?;
    let copy = |from: PathBuf, name: &str| {
        fs::copy(&from, to.join(name)).with_context(|| format!("cannot copy {}", from.display()))
    };
    copy(paths::root().join("LICENSE"), "LICENSE")?;
    copy(paths::root().join("CHANGELOG.md"), "CHANGELOG.md")?;
    for (file, name) in OF_MPICH {
        copy(tree.mpich.join(file), name)?;
    }
    let linked = linked()?;
    for (name, text) in [
        ("copyright", COPYRIGHT.to_string()),
        ("rust-libraries.txt", list(&linked)),
        ("rust-licences.txt", texts(&linked)?),
    ] {
        fs::write(to.join(name), text).with_context(|| format!("cannot write {name} in {}", to.display()))?;
    }
    Ok(())
}

/// Returns the libraries of other authors that are linked into programs and libraries of the packages.
fn linked() -> Result<Vec<Package>> {
    let cargo = || {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(paths::root());
        command
    };
    let mut tree = cargo();
    tree.args(["tree", "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    for package in PACKAGES {
        tree.args(["--package", package]);
    }
    let tree = process::output(&mut tree)?;
    let linked: BTreeSet<String> = tree.lines().filter_map(name_and_version).collect();
    let text = process::output(cargo().args(["metadata", "--format-version", "1"]))?;
    let metadata: Metadata = serde_json::from_str(&text).context("cargo metadata prints something else")?;
    let ours = |package: &Package| linked.contains(&format!("{} {}", package.name, package.version));
    Ok(metadata.packages.into_iter().filter(|package| package.source.is_some() && ours(package)).collect())
}

/// Returns `libc 0.2.170` for `libc v0.2.170 (*)`.
fn name_and_version(line: &str) -> Option<String> {
    let (name, rest) = line.split_once(" v")?;
    Some(format!("{name} {}", rest.split_whitespace().next()?))
}

/// Returns a line for each library: name, version, licence, repository.
fn list(packages: &[Package]) -> String {
    let or = |text: &Option<String>, other: &str| text.clone().unwrap_or_else(|| other.to_string());
    let line = |package: &Package| {
        let (licence, repository) = (or(&package.license, "see its sources"), or(&package.repository, "-"));
        format!("{} {}: {licence}, {repository}\n", package.name, package.version)
    };
    packages.iter().map(line).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns the texts of the libraries' licences, each once, after the names of the libraries that have it.
fn texts(packages: &[Package]) -> Result<String> {
    let mut texts: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        for text in licences_in(package.manifest_path.parent().unwrap_or(Path::new(".")))? {
            texts.entry(text).or_default().insert(&package.name);
        }
    }
    let part = |(text, names): (String, BTreeSet<&str>)| {
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        format!("==== {names}\n\n{}\n\n", text.trim_end())
    };
    Ok(texts.into_iter().map(part).collect())
}

/// Returns the licences in a directory.
fn licences_in(dir: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        if entry.file_type()?.is_file() && NAMES.iter().any(|start| name.starts_with(start)) {
            texts.push(String::from_utf8_lossy(&fs::read(entry.path())?).into_owned());
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargos_tree_names_libraries() {
        let lines = ["libc v0.2.170", "clap v4.5.1 (*)", "ntbring v0.1.0 (/somewhere)", ""];
        let names: Vec<_> = lines.into_iter().filter_map(name_and_version).collect();
        assert_eq!(names, ["libc 0.2.170", "clap 4.5.1", "ntbring 0.1.0"]);
    }

    #[test]
    fn a_licence_is_there_once_with_all_that_have_it() {
        let dir = tempfile::tempdir().unwrap();
        let package = |name: &str| Package {
            name: name.to_string(),
            version: "1.0.0".to_string(),
            license: None,
            repository: None,
            source: None,
            manifest_path: dir.path().join("Cargo.toml"),
        };
        fs::write(dir.path().join("LICENSE-MIT"), "as is\n").unwrap();
        fs::write(dir.path().join("README.md"), "not a licence").unwrap();
        let packages = [package("b"), package("a")];
        assert_eq!(texts(&packages).unwrap(), "==== a, b\n\nas is\n\n");
        assert_eq!(list(&packages), "a 1.0.0: see its sources, -\nb 1.0.0: see its sources, -\n");
    }
}
