//! File locks between calls of xtask, for work that two processes must not do at once.

use std::fs::{self, File};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{bail, Context, Result};
use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;

use crate::{paths, process};

/// A lock that is held until it is dropped or its process ends, however that happens.
pub struct Lock(#[expect(dead_code, reason = "only held")] File);

/// Takes the lock, waiting while another process holds it.
pub fn take(path: &Path) -> Result<Lock> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    }
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    let mut told = false;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Lock(file)),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(error) => return Err(error).with_context(|| format!("cannot lock {}", path.display())),
        }
        if process::interrupted() {
            bail!("interrupted");
        }
        if !told {
            println!("waiting for another call of xtask to end (it holds {})", paths::shown(path));
            told = true;
        }
        thread::sleep(Duration::from_millis(200));
    }
}
