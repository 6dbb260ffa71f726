//! `cargo xtask graph`: prints the crates of the workspace and their dependencies on each other, from `cargo metadata`.

mod circles;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;
use serde::Deserialize;

use crate::paths;

/// Command-line options.
#[derive(Args, Clone, Debug)]
pub struct GraphArgs {
    /// Print circles among the files of each crate instead: files that refer to each other
    #[arg(long)]
    circles: bool,
}

/// The part of the output of `cargo metadata` that is used here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    description: Option<String>,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// The kind of dependency; None for a normal one.
    kind: Option<String>,
}

/// A crate of the workspace.
struct Crate {
    folder: String,
    description: String,
    /// The crates of the workspace that it depends on directly and that none of its other dependencies depends on.
    uses: BTreeSet<String>,
    /// All crates of the workspace that it depends on, directly or indirectly.
    all: BTreeSet<String>,
}

/// Prints the graph, or circles of files.
pub fn run(args: &GraphArgs) -> Result<()> {
    print!("{}", if args.circles { circles_of_files()? } else { graph()? });
    Ok(())
}

/// Returns a paragraph for each circle of files in a crate.
fn circles_of_files() -> Result<String> {
    let mut text = String::new();
    for package in metadata()?.packages {
        for target in package.targets.iter().filter(|target| target.is_product()) {
            for circle in circles::circles(&target.src_path)? {
                text += &format!("{}: {} files\n", short(&package.name), circle.len());
                for (file, referred) in circle {
                    let referred: Vec<String> = referred.iter().map(|file| shown(file)).collect();
                    text += &format!("    {} -> {}\n", shown(&file), referred.join(", "));
                }
            }
        }
    }
    Ok(text)
}

impl Target {
    /// Returns true for libraries and programs, which are not tests, examples or build scripts.
    fn is_product(&self) -> bool {
        self.kind.iter().any(|kind| ["lib", "cdylib", "bin"].contains(&kind.as_str()))
    }
}

/// Returns a file's path from the repository's root.
fn shown(file: &Path) -> String {
    file.strip_prefix(paths::root()).unwrap_or(file).display().to_string()
}

/// Returns the graph as text: one line for each crate, below all crates that depend on it.
pub fn graph() -> Result<String> {
    let crates = crates()?;
    let mut text = String::new();
    for (name, one) in ordered(&crates) {
        let uses: Vec<&str> = one.uses.iter().map(|name| short(name)).collect();
        let uses = if uses.is_empty() { String::new() } else { format!(" -> {}", uses.join(", ")) };
        text += &format!("{:<13}{}{uses}\n", short(name), one.folder);
        text += &format!("             {}\n", one.description);
    }
    Ok(text)
}

fn short(name: &str) -> &str {
    name.strip_prefix("ntbring-").unwrap_or(name)
}

fn metadata() -> Result<Metadata> {
    let output = Command::new("cargo")
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline", "--manifest-path"])
        .arg(paths::root().join("Cargo.toml"))
        .output()
        .context("cannot run cargo metadata")?;
    serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")
}

fn crates() -> Result<BTreeMap<String, Crate>> {
    let metadata = metadata()?;
    let names: BTreeSet<String> = metadata.packages.iter().map(|package| package.name.clone()).collect();
    let mut crates = BTreeMap::new();
    for package in metadata.packages {
        let normal = package.dependencies.iter().filter(|d| d.kind.is_none() && names.contains(&d.name));
        let all: BTreeSet<String> = normal.map(|d| d.name.clone()).collect();
        let folder = package.manifest_path.parent().unwrap_or(&package.manifest_path);
        let folder = shown(folder);
        let folder = if folder.is_empty() { "src/ffi".into() } else { folder };
        let description = package.description.unwrap_or_default();
        crates.insert(package.name, Crate { folder, description, uses: all.clone(), all });
    }
    let direct: BTreeMap<String, BTreeSet<String>> = crates.iter().map(|(n, c)| (n.clone(), c.all.clone())).collect();
    for one in crates.values_mut() {
        let below: BTreeSet<String> = one.all.iter().flat_map(|used| reached(&direct, used)).collect();
        one.uses = one.all.difference(&below).cloned().collect();
    }
    Ok(crates)
}

/// Returns all crates that are reachable from one.
fn reached(direct: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&String> = direct[from].iter().collect();
    while let Some(next) = open.pop() {
        if found.insert(next.clone()) {
            open.extend(&direct[next]);
        }
    }
    found
}

/// Sorts crates topologically, each before those that it depends on; by name where the order is free.
fn ordered(crates: &BTreeMap<String, Crate>) -> Vec<(&String, &Crate)> {
    let mut order: Vec<(&String, &Crate)> = Vec::new();
    while order.len() < crates.len() {
        let placed = |name: &String| order.iter().any(|(one, _)| *one == name);
        let free =
            |name: &&String| !placed(name) && crates.iter().all(|(user, one)| !one.all.contains(*name) || placed(user));
        // Cargo rejects circular dependencies, so a crate is always found while any is left.
        let Some(next) = crates.keys().find(free) else { break };
        order.push((next, &crates[next]));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_architecture_page_shows_the_graph_as_it_is() {
        let page = std::fs::read_to_string(paths::root().join("docs/architecture.md")).unwrap();
        let graph = graph().unwrap();
        let shown: String = graph.lines().map(|line| format!("    {line}\n")).collect();
        assert!(page.contains(&shown), "docs/architecture.md must contain what `cargo xtask graph` prints:\n{shown}");
    }

    #[test]
    fn nothing_above_the_devices_names_a_backend() {
        for (name, one) in crates().unwrap() {
            let may = ["ntbring-devices", "ntbring-cli", "ntbring-papers", "ntbring-fuzzing"].contains(&name.as_str());
            assert!(may || !one.all.contains("ntbring-emu"), "{name} names the emulated backend");
        }
    }

    #[test]
    fn no_files_of_a_crate_of_the_libraries_refer_to_each_other_in_a_circle() {
        for package in metadata().unwrap().packages {
            for target in package.targets.iter().filter(|target| target.is_product()) {
                if ["src/", "shmem/"].iter().any(|folder| shown(&target.src_path).starts_with(folder)) {
                    let circles = circles::circles(&target.src_path).unwrap();
                    assert!(circles.is_empty(), "{}: {circles:#?}", package.name);
                }
            }
        }
    }

    #[test]
    fn the_library_needs_nothing_of_the_tools() {
        let output = Command::new("cargo")
            .args(["tree", "--offline", "--package", "ntbring", "--edges", "normal", "--prefix", "none"])
            .current_dir(paths::root())
            .output()
            .unwrap();
        let tree = String::from_utf8(output.stdout).unwrap();
        assert!(tree.contains("ntbring-endpoint"), "{tree}");
        for tool in ["clap", "plotters", "comfy-table"] {
            assert!(!tree.lines().any(|line| line.starts_with(tool)), "libntbring.so is built with {tool}");
        }
    }
}
