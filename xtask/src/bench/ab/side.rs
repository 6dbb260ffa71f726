//! The two sides of a comparison, as the command line names them.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{bail, Result};

use super::git;

/// The word for the present tree with its uncommitted changes.
const WORKTREE: &str = "worktree";

/// A build of ntbring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// The present tree.
    Worktree,
    /// A commit, by its full hash; its short hash and subject.
    Commit { hash: String, title: String },
    /// A libntbring.so that was built elsewhere.
    Library(PathBuf),
    /// An installation: MPICH with ntbring.
    Installation(PathBuf),
}

impl Side {
    /// Parses a side: the word `worktree`, a file, a directory with an installation, or a commit.
    pub fn parse(text: &str) -> Result<Self> {
        if text == WORKTREE {
            return Ok(Self::Worktree);
        }
        if let Some(side) = Self::of_path(Path::new(text))? {
            return Ok(side);
        }
        match git::commit(text) {
            Some(hash) => Ok(Self::Commit { title: git::title(&hash)?, hash }),
            None => bail!(
                "\"{text}\" is neither a commit of this repository nor the word \"{WORKTREE}\", nor the path of a \
                 libntbring.so or of an installation (a directory with bin/mpicc, bin/mpiexec and lib/libntbring.so)"
            ),
        }
    }

    /// Returns the side that a path names: a file is a library, a directory with an installation is that installation.
    /// Returns None for any other directory, since it may have the name of a branch.
    fn of_path(path: &Path) -> Result<Option<Self>> {
        let absolute = std::path::absolute(path)?;
        if absolute.is_file() {
            return Ok(Some(Self::Library(absolute)));
        }
        let needed = ["bin/mpicc", "bin/mpiexec", "lib/libntbring.so"];
        let is_installation = needed.iter().all(|file| absolute.join(file).is_file());
        Ok(is_installation.then_some(Self::Installation(absolute)))
    }
}

impl fmt::Display for Side {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worktree => out.write_str("the present tree"),
            Self::Commit { title, .. } => write!(out, "commit {title}"),
            Self::Library(file) => write!(out, "library {}", file.display()),
            Self::Installation(dir) => write!(out, "installation {}", dir.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn paths_are_libraries_or_installations() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Side::of_path(dir.path()).unwrap(), None);
        for part in ["bin", "lib"] {
            fs::create_dir(dir.path().join(part)).unwrap();
        }
        for file in ["bin/mpicc", "bin/mpiexec", "lib/libntbring.so"] {
            fs::write(dir.path().join(file), "").unwrap();
        }
        assert_eq!(Side::of_path(dir.path()).unwrap(), Some(Side::Installation(dir.path().to_path_buf())));
        let library = dir.path().join("lib/libntbring.so");
        assert_eq!(Side::of_path(&library).unwrap(), Some(Side::Library(library)));
    }

    #[test]
    fn what_names_nothing_is_refused() {
        assert_eq!(Side::parse("worktree").unwrap(), Side::Worktree);
        let error = Side::parse("no-such-commit").unwrap_err().to_string();
        assert!(error.contains("\"no-such-commit\" is neither a commit"), "{error}");
        assert!(Side::parse("--upload-pack=x").is_err());
    }
}
