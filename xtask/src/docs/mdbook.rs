//! mdBook, of crates.io: installed below `target` at its first use, so that neither xtask nor CI are built with it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{paths, process, ui};

/// The last version that the oldest Rust of this workspace compiles.
const VERSION: &str = "0.4.52";

/// Returns the program; installs it if it is not there.
pub fn provide() -> Result<PathBuf> {
    let root = paths::target().join("tools");
    let program = root.join("bin/mdbook");
    if process::first_line(Command::new(&program).arg("--version")) == Some(format!("mdbook v{VERSION}")) {
        return Ok(program);
    }
    let log = root.join("mdbook.log");
    paths::remove(&log)?;
    let mut install = Command::new("cargo");
    // Its server, which shows a book while it is edited, would need many more crates.
    install.args(["install", "mdbook", "--locked", "--force", "--version", VERSION]);
    install.args(["--no-default-features", "--features", "search", "--root"]).arg(&root);
    println!("mdBook makes the site. It is compiled once, in some minutes; {} has the progress.", paths::shown(&log));
    ui::step(&format!("mdBook {VERSION}, from crates.io"), || process::check_logged(&mut install, &log))
        .context("mdBook, which makes the site, cannot be installed; cargo must reach crates.io, or a mirror of it")?;
    Ok(program)
}
