//! The paths of the workspace. All are absolute, so that the commands work from any directory.

use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, Result};

/// Returns the root of the workspace: the directory that holds `xtask/`.
pub fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// Returns the directory of all generated files, which can be deleted at any time.
pub fn target() -> PathBuf {
    root().join("target")
}

/// Returns the directory of set-up's products: sources, builds, and one installation for each profile.
pub fn mpich() -> PathBuf {
    target().join("mpich")
}

/// Returns the directory of the logs of set-up's steps.
pub fn logs() -> PathBuf {
    mpich().join("logs")
}

/// Returns the directory of the stamps of set-up's steps.
pub fn stamps() -> PathBuf {
    mpich().join("stamps")
}

/// Returns the directory of the crate with the MPI programs written in Rust.
pub fn mpi_programs() -> PathBuf {
    root().join("tests/mpi")
}

/// Returns a path as shown to the user: relative to the current directory where that is shorter.
pub fn shown(path: &Path) -> String {
    std::env::current_dir().ok().and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path).display().to_string()
}

/// Removes a file, a link or a whole directory, if it is there.
pub fn remove(path: &Path) -> Result<()> {
    let result = match fs::symlink_metadata(path) {
        Ok(data) if data.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
