//! Where things are: every path is absolute and starts at the workspace's root, so
//! that the commands work from any directory.

use std::path::{Path, PathBuf};

/// The workspace's root: the directory that holds `xtask/`.
pub fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// Everything that can be thrown away.
pub fn target() -> PathBuf {
    root().join("target")
}

/// What `setup` makes: sources, builds, and one installation a profile.
pub fn mpich() -> PathBuf {
    target().join("mpich")
}

/// The logs of set-up's steps.
pub fn logs() -> PathBuf {
    mpich().join("logs")
}

/// The stamps of set-up's steps.
pub fn stamps() -> PathBuf {
    mpich().join("stamps")
}

/// The crate with the MPI programs written in Rust.
pub fn mpi_programs() -> PathBuf {
    root().join("tests/mpi")
}

/// A path as a person wants to read it: relative to the current directory where that is shorter.
pub fn shown(path: &Path) -> String {
    std::env::current_dir().ok().and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path).display().to_string()
}
