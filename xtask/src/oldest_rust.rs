//! The oldest Rust that compiles the workspace, which README names: no package of Cargo.lock may need a later one.
//!
//! The workspace's resolver keeps to it when `cargo update` chooses versions.

use std::process::Command;

use serde_json::Value;

use crate::{paths, process};

/// Returns the packages of a manifest's lock file, each with the Rust that it needs, that need a later one than `oldest`.
fn too_new(manifest: &str, oldest: (u32, u32)) -> Vec<String> {
    let mut metadata = Command::new("cargo");
    metadata.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu"]);
    let text = process::output(metadata.arg("--manifest-path").arg(paths::root().join(manifest))).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let used: Vec<&Value> = all["resolve"]["nodes"].as_array().unwrap().iter().map(|node| &node["id"]).collect();
    let packages = all["packages"].as_array().unwrap().iter().filter(|package| used.contains(&&package["id"]));
    let needing = packages.filter_map(|package| {
        let needed = package["rust_version"].as_str()?;
        (numbers(needed) > oldest).then(|| format!("{} {} needs Rust {needed}", package["name"], package["version"]))
    });
    needing.collect()
}

/// Returns the first two numbers of a version.
fn numbers(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[test]
fn no_package_needs_a_later_rust_than_the_workspace_says() {
    let oldest = numbers(env!("CARGO_PKG_RUST_VERSION"));
    for manifest in ["Cargo.toml", "tests/mpi/Cargo.toml"] {
        let found = too_new(manifest, oldest);
        assert!(found.is_empty(), "{manifest}:\n{}\n`cargo update PACKAGE` chooses an older version", found.join("\n"));
    }
}

#[test]
fn versions_are_compared_by_their_numbers() {
    assert!(numbers("1.100") > numbers("1.89.1") && numbers("1.89") == numbers("1.89.0"));
}
