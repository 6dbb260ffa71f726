//! rustfmt and clippy, which a minimal installation of Rust lacks.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::{paths, process};

/// Makes sure that a component of Rust is installed, if necessary with rustup. In CI a missing component is an error.
/// Elsewhere `false` is returned, so that the other tests run without it.
pub fn available(component: &str, log: &Path) -> Result<bool> {
    let answers = || {
        let mut ask = Command::new("cargo");
        ask.args([if component == "rustfmt" { "fmt" } else { component }, "--version"]);
        process::run_logged(&mut ask, log, None).is_ok_and(|outcome| outcome.success())
    };
    if answers() {
        return Ok(true);
    }
    let mut add = Command::new("rustup");
    add.args(["component", "add", component]).current_dir(paths::root());
    // A missing rustup is handled like a failure of rustup.
    let added = process::run_logged(&mut add, log, None).is_ok_and(|outcome| outcome.success());
    if added && answers() {
        return Ok(true);
    }
    if env::var_os("CI").is_some_and(|value| value != "false") {
        anyhow::bail!("{component} is not installed, and rustup cannot add it");
    }
    println!("  not run: {component} is not installed, and rustup cannot add it");
    Ok(false)
}
