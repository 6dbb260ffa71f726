//! Names of memory files, in a directory. It is for hosts that have nothing else in common, such as containers.
//!
//! The process that creates a file holds a lock on it, and removes it in the end. A file without such a lock is left
//! over from a job that was killed; every process that creates a file first removes such files.

use crate::memory_file::unnamed;
use crate::{FileAddress, HostError, MemoryFile};
use nix::fcntl::{AtFlags, Flock, FlockArg};
use nix::unistd::linkat;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Start of the name of every file. The rest is the file's token in hexadecimal.
const PREFIX: &str = "ntbring-";

/// The name of a memory file that this process has created. The file is removed when its name is dropped.
pub struct FileName {
    path: PathBuf,
    _lock: Flock<File>,
}

impl FileName {
    /// Creates a file of `size` bytes in `dir`, as [`MemoryFile::create`] does, after removing what is left over there.
    pub fn create(dir: &Path, size: u64) -> Result<(MemoryFile, FileName, FileAddress), HostError> {
        let shared = |cause| HostError::Shared { dir: dir.display().to_string(), cause };
        // The name must hold wherever the process goes.
        let dir = dir.canonicalize().map_err(shared)?;
        sweep(&dir).map_err(shared)?;
        let file = unnamed(&dir).map_err(shared)?;
        // The lock is taken before the file has a name, so that no process takes the file for left over.
        let lock = Flock::lock(file.try_clone().map_err(shared)?, FlockArg::LockShared);
        let lock = lock.map_err(|(_, error)| shared(error.into()))?;
        let (file, address) = MemoryFile::allocate(file, &dir, size)?;
        let path = path(&dir, &address);
        let descriptor = format!("/proc/self/fd/{}", file.file().as_raw_fd());
        linkat(None, Path::new(&descriptor), None, &path, AtFlags::AT_SYMLINK_FOLLOW)
            .map_err(|error| shared(error.into()))?;
        Ok((file, FileName { path, _lock: lock }, address))
    }

    /// Opens the file that a process of another host has created in the directory that this process knows as `dir`.
    pub fn open(dir: &Path, address: &FileAddress) -> Result<MemoryFile, HostError> {
        let path = path(dir, address);
        MemoryFile::open_at(&path, address).map_err(|error| match error {
            HostError::Open { cause, .. } => HostError::Absent { path: path.display().to_string(), cause },
            error => error,
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for FileName {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn path(dir: &Path, address: &FileAddress) -> PathBuf {
    dir.join(format!("{PREFIX}{:016x}", address.token))
}

/// Removes the window files in a directory whose jobs have been killed, and no other file.
fn sweep(dir: &Path) -> io::Result<()> {
    for entry in dir.read_dir()? {
        let entry = entry?;
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let Some(token) = entry.file_name().to_str().filter(|_| is_file).and_then(token) else { continue };
        // Files of other users cannot be opened.
        let Some((file, _)) = MemoryFile::found(0, &entry.path()).filter(|(file, _)| file.has_token(token)) else {
            continue;
        };
        let Ok(file) = file.file().try_clone() else { continue };
        if Flock::lock(file, FlockArg::LockExclusiveNonblock).is_ok() {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// Returns the token in the name of a window file; None if it is no such name.
fn token(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?;
    let token = u64::from_str_radix(digits, 16).ok()?;
    (format!("{token:016x}") == digits).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_by_its_address_and_disappears_in_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let (_, name, address) = FileName::create(dir.path(), 8192).unwrap();
        assert_eq!(FileName::open(dir.path(), &address).unwrap().size(), 8192);
        let other = FileAddress { token: address.token ^ 1, ..address };
        assert!(matches!(FileName::open(dir.path(), &other), Err(HostError::Absent { .. })));
        let other = FileAddress { inode: address.inode ^ 1, ..address };
        assert!(matches!(FileName::open(dir.path(), &other), Err(HostError::Foreign { .. })));
        drop(name);
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn only_what_is_left_over_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (file, mut name, left) = FileName::create(dir.path(), 4096).unwrap();
        // As if its process had been killed.
        let path = std::mem::take(&mut name.path);
        drop((file, name));
        let others = ["something", "ntbring-0.3.tar.gz", "ntbring-0123456789abcdef", "ntbring-123"];
        others.iter().for_each(|name| std::fs::write(dir.path().join(name), [7; 8192]).unwrap());
        std::fs::create_dir(dir.path().join("ntbring-00000000000000ff")).unwrap();
        // A window file under another name is a user's copy.
        std::fs::copy(&path, dir.path().join(format!("ntbring-{:016x}", left.token ^ 1))).unwrap();
        let before = dir.path().read_dir().unwrap().count();
        let (_, running, address) = FileName::create(dir.path(), 4096).unwrap();
        assert!(!path.exists());
        assert_eq!(dir.path().read_dir().unwrap().count(), before);
        let _another = FileName::create(dir.path(), 4096).unwrap();
        assert!(running.path().exists() && FileName::open(dir.path(), &address).is_ok());
    }

    #[test]
    fn a_directory_that_is_missing_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let text = FileName::create(&dir.path().join("absent"), 4096).err().unwrap().to_string();
        assert!(text.contains("absent") && text.contains("NTBRING_DEVICE"), "{text}");
    }
}
