//! `cargo xtask graph`: prints the crates of the workspace and their dependencies on each other, from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::paths;

/// The part of the output of `cargo metadata` that is used here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    description: Option<String>,
    manifest_path: std::path::PathBuf,
    dependencies: Vec<Dependency>,
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

/// Prints the graph.
pub fn run() -> Result<()> {
    print!("{}", graph()?);
    Ok(())
}

/// Returns the graph as text: one line for each crate, below all crates that depend on it.
pub fn graph() -> Result<String> {
    let crates = crates()?;
    let mut text = String::new();
    for (name, one) in ordered(&crates) {
        let uses: Vec<&str> = one.uses.iter().map(|name| short(name)).collect();
        let uses = if uses.is_empty() { String::new() } else { format!(" -> {}", uses.join(", ")) };
        text += &format!("{:<11}{}{uses}\n", short(name), one.folder);
        text += &format!("           {}\n", one.description);
    }
    Ok(text)
}

fn short(name: &str) -> &str {
    name.strip_prefix("ntbring-").unwrap_or(name)
}

fn crates() -> Result<BTreeMap<String, Crate>> {
    let output = Command::new("cargo")
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline", "--manifest-path"])
        .arg(paths::root().join("Cargo.toml"))
        .output()
        .context("cannot run cargo metadata")?;
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")?;
    let names: BTreeSet<String> = metadata.packages.iter().map(|package| package.name.clone()).collect();
    let mut crates = BTreeMap::new();
    for package in metadata.packages {
        let normal = package.dependencies.iter().filter(|d| d.kind.is_none() && names.contains(&d.name));
        let all: BTreeSet<String> = normal.map(|d| d.name.clone()).collect();
        let folder = package.manifest_path.parent().unwrap_or(&package.manifest_path);
        let folder = folder.strip_prefix(paths::root()).unwrap_or(folder).display().to_string();
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
            let may = ["ntbring-devices", "ntbring-cli", "ntbring-papers"].contains(&name.as_str());
            assert!(may || !one.all.contains("ntbring-emu"), "{name} names the emulated backend");
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
