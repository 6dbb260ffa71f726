//! One at a time, of what cannot be done by two.

use std::fs::{self, File};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{bail, Context, Result};
use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;

use crate::{paths, process};

/// Held until it is dropped, or its process ends in whatever way.
pub struct Lock(#[expect(dead_code, reason = "only held")] File);

/// Takes the lock; waits while another process has it.
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
