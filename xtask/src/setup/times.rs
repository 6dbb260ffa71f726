//! Avoids that a new run of configure causes everything to be compiled anew.
//!
//! configure rewrites all its output files, even those whose content stays the same, and make would then compile all of
//! MPICH. So files with unchanged content get their old modification times back.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use walkdir::WalkDir;

use super::stamp::files_below;

/// The state of a build directory's files that configure may write, taken before configure runs again.
pub struct Snapshot(HashMap<PathBuf, Before>);

struct Before {
    time: SystemTime,
    /// Content, of headers only: no other file that configure writes is an input of the compiler.
    content: Option<Vec<u8>>,
}

impl Snapshot {
    /// Takes a snapshot of a build directory, which need not exist.
    pub fn take(build: &Path) -> Result<Self> {
        let mut files = HashMap::new();
        if !build.is_dir() {
            return Ok(Self(files));
        }
        for name in files_below(build)? {
            let file = build.join(&name);
            if !file.is_file() {
                continue;
            }
            let content = match is_header(&file) {
                true => Some(fs::read(&file)?),
                false => None,
            };
            let time = fs::metadata(&file)?.modified()?;
            files.insert(name, Before { time, content });
        }
        Ok(Self(files))
    }

    /// Restores the old modification time of all files except headers whose content has changed.
    ///
    /// These files include makefiles, `config.status` and the like: configure has just written them, and make must not
    /// run it again. For the same reason the inputs of configure in the source tree must not be newer than they are.
    pub fn restore_times(&self, build: &Path, source: &Path) -> Result<()> {
        for (name, before) in &self.0 {
            let file = build.join(name);
            let Ok(now) = fs::metadata(&file) else {
                continue;
            };
            let changed =
                before.content.as_ref().is_some_and(|content| !fs::read(&file).is_ok_and(|now| now == *content));
            if now.modified()? != before.time && !changed {
                set_time(&file, before.time)?;
            }
        }
        let Some(status) = self.0.get(Path::new("config.status")) else {
            return Ok(());
        };
        for entry in WalkDir::new(source) {
            let entry = entry?;
            if !entry.file_type().is_file() || !is_input(entry.path()) {
                continue;
            }
            if entry.metadata()?.modified()? > status.time {
                set_time(entry.path(), status.time)?;
            }
        }
        Ok(())
    }
}

fn is_header(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "h")
}

/// Returns true if configure or the makefiles are generated from this file.
fn is_input(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name == "configure" || [".in", ".m4", ".ac", ".am", ".mk"].iter().any(|ending| name.ends_with(ending))
}

fn set_time(file: &Path, time: SystemTime) -> Result<()> {
    File::options()
        .append(true)
        .open(file)
        .and_then(|open| open.set_modified(time))
        .with_context(|| format!("cannot set the time of {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_headers_that_say_something_else_are_new() {
        let build = tempfile::tempdir().unwrap();
        let source = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - Duration::from_secs(1000);
        let all = ["same.h", "other.h", "config.status", "Makefile"];
        for name in all {
            let file = File::create(build.path().join(name)).unwrap();
            file.set_modified(old).unwrap();
        }
        let before = Snapshot::take(build.path()).unwrap();
        for name in all {
            fs::write(build.path().join(name), if name == "same.h" { "" } else { "x" }).unwrap();
        }
        for name in ["configure", "code.c"] {
            fs::write(source.path().join(name), "x").unwrap();
        }
        before.restore_times(build.path(), source.path()).unwrap();

        let time = |dir: &Path, name: &str| fs::metadata(dir.join(name)).unwrap().modified().unwrap();
        for name in ["same.h", "config.status", "Makefile"] {
            assert_eq!(time(build.path(), name), old, "{name}");
        }
        assert!(time(build.path(), "other.h") > old);
        assert_eq!(time(source.path(), "configure"), old);
        assert!(time(source.path(), "code.c") > old);
    }
}
