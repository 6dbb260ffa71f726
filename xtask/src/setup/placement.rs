//! Placing files into an installation.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Copies a file unless an identical one is there already. The old file is replaced atomically, so that a program that
/// has mapped it keeps the old content.
pub fn install(from: &Path, to: &Path) -> Result<()> {
    let work = || -> Result<()> {
        let content = fs::read(from)?;
        if fs::read(to).is_ok_and(|old| old == content) {
            return Ok(());
        }
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        let temporary = to.with_extension("tmp");
        fs::copy(from, &temporary)?;
        fs::rename(&temporary, to)?;
        Ok(())
    };
    work().with_context(|| format!("cannot install {} as {}", from.display(), to.display()))
}
