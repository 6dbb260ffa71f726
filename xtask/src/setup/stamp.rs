//! Caching by content: a step is done when its stamp holds the digest of its inputs.
//!
//! A stamp is removed before its step starts and written after the step is complete, so that an interrupted step never
//! counts as done.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest as _, Sha256};
use walkdir::WalkDir;

use crate::paths;

/// A digest of all inputs of a step.
#[derive(Clone, Default)]
pub struct Digest(Sha256);

impl Digest {
    /// Returns an empty digest of a step. Name and version distinguish the step from other steps and from its form in
    /// other versions of xtask.
    pub fn of(step: &str, version: u32) -> Self {
        Self::default().text(step).text(&version.to_string())
    }

    /// Adds a text, preceded by its length, so that different sequences of texts give different digests.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        self.0.update((text.len() as u64).to_le_bytes());
        self.0.update(text);
        self
    }

    /// Adds the content of a file.
    pub fn file(self, file: &Path) -> Result<Self> {
        Ok(self.text(&sha256(file)?))
    }

    /// Adds the names and contents of some files below a directory.
    pub fn files(mut self, dir: &Path, files: &[PathBuf]) -> Result<Self> {
        for file in files {
            self = self.text(&file.to_string_lossy()).file(&dir.join(file))?;
        }
        Ok(self)
    }

    /// Adds the names, sizes and modification times of all files below a directory. This is fast, for large trees.
    pub fn listing(mut self, dir: &Path) -> Result<Self> {
        for file in files_below(dir)? {
            let data = fs::symlink_metadata(dir.join(&file))?;
            self = self.text(&format!("{} {} {}.{}", file.display(), data.len(), data.mtime(), data.mtime_nsec()));
        }
        Ok(self)
    }

    /// Returns the digest in hexadecimal.
    pub fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

/// A file that holds the digest of a step that was completed.
pub struct Stamp {
    file: PathBuf,
}

impl Stamp {
    /// Returns the stamp with this name.
    pub fn new(name: &str) -> Self {
        Self { file: paths::stamps().join(name) }
    }

    /// Returns the digest of the completed step, if there is one.
    pub fn read(&self) -> Option<String> {
        fs::read_to_string(&self.file).ok()
    }

    /// Returns true if the step has been completed with these inputs.
    pub fn holds(&self, digest: &str) -> bool {
        self.read().as_deref() == Some(digest)
    }

    /// Removes the stamp, before the step starts.
    pub fn clear(&self) -> Result<()> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", self.file.display()))
            }
            _ => Ok(()),
        }
    }

    /// Writes the stamp, after the step is complete.
    pub fn write(&self, digest: &str) -> Result<()> {
        write_atomically(&self.file, digest.as_bytes())
    }

    /// Performs the step unless it has been completed with these inputs.
    pub fn unless_held(&self, digest: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        if self.holds(digest) {
            return Ok(());
        }
        self.clear()?;
        work()?;
        self.write(digest)
    }
}

/// Returns the SHA-256 of a file in hexadecimal.
pub fn sha256(file: &Path) -> Result<String> {
    let read = || -> io::Result<String> {
        let mut input = File::open(file)?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 1 << 20];
        loop {
            let count = input.read(&mut buffer)?;
            if count == 0 {
                return Ok(hex(&hasher.finalize()));
            }
            hasher.update(&buffer[..count]);
        }
    };
    read().with_context(|| format!("cannot read {}", file.display()))
}

/// Returns all regular files and links below a directory, as sorted relative paths.
pub fn files_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in WalkDir::new(dir).sort_by_file_name() {
        let entry = entry.with_context(|| format!("cannot list {}", dir.display()))?;
        if !entry.file_type().is_dir() {
            files.push(entry.path().strip_prefix(dir)?.to_path_buf());
        }
    }
    Ok(files)
}

/// Writes a file so that readers see either the old content or all of the new content.
pub fn write_atomically(file: &Path, content: &[u8]) -> Result<()> {
    let work = || -> io::Result<()> {
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent)?;
        }
        let temporary = file.with_extension("tmp");
        fs::write(&temporary, content)?;
        fs::rename(&temporary, file)
    };
    work().with_context(|| format!("cannot write {}", file.display()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_is_the_standards() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("abc");
        fs::write(&file, "abc").unwrap();
        assert_eq!(sha256(&file).unwrap(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn names_and_contents_both_count() {
        let one = tempfile::tempdir().unwrap();
        let two = tempfile::tempdir().unwrap();
        fs::write(one.path().join("a"), "x").unwrap();
        fs::write(two.path().join("b"), "x").unwrap();
        let digest = |dir: &Path| {
            let files = files_below(dir).unwrap();
            Digest::of("t", 1).files(dir, &files).unwrap().finish()
        };
        assert_ne!(digest(one.path()), digest(two.path()));
        fs::rename(two.path().join("b"), two.path().join("a")).unwrap();
        assert_eq!(digest(one.path()), digest(two.path()));
        fs::write(two.path().join("a"), "y").unwrap();
        assert_ne!(digest(one.path()), digest(two.path()));
    }

    #[test]
    fn texts_do_not_run_into_each_other() {
        let digest = |a: &str, b: &str| Digest::of("t", 1).text(a).text(b).finish();
        assert_ne!(digest("ab", "c"), digest("a", "bc"));
    }
}
