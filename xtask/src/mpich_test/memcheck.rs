//! Runs tests under valgrind's memcheck.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// Factor by which the time limits of tests are longer under valgrind.
pub const SLOWER: u32 = 10;

/// Lines of valgrind about itself, and about system calls that it does not know and that fail under it.
const NOISE: &[&str] = &[
    "WARNING: unhandled amd64-linux syscall",
    "You may be able to write your own handler",
    "Read the file README_MISSING_SYSCALL_OR_IOCTL",
    "Nevertheless we consider this a bug",
    "it at http",
];

/// Adds valgrind to a call of mpiexec; the caller adds the program after it.
pub fn add(command: &mut Command, log: &Path) {
    command
        .args(["valgrind", "-q", "--error-limit=no"])
        .arg(format!("--log-file={}.valgrind.%p", log.display()))
        // hwloc's x86 backend queries processors with instructions that valgrind does not emulate.
        .env("HWLOC_COMPONENTS", "-x86");
}

/// Returns the errors that valgrind has found in all ranks, and removes its files. None means that there were no files,
/// so that valgrind has not run.
pub fn found(log: &Path) -> Result<Option<String>> {
    let name = log.file_name().context("a log has a name")?.to_string_lossy().into_owned() + ".valgrind.";
    let mut text = None;
    for entry in fs::read_dir(log.parent().context("a log has a directory")?)? {
        let path: PathBuf = entry?.path();
        if path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&name)) {
            let found: &mut String = text.get_or_insert_default();
            found.push_str(&without_noise(&fs::read_to_string(&path)?));
            fs::remove_file(&path)?;
        }
    }
    Ok(text)
}

fn without_noise(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.is_empty() && !NOISE.iter().any(|noise| line.contains(noise)));
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_ranks_have_found_is_put_together_and_no_file_is_no_success() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("a.log");
        assert_eq!(found(&log).unwrap(), None);
        fs::write(dir.path().join("a.log.valgrind.1"), "").unwrap();
        assert_eq!(found(&log).unwrap().as_deref(), Some(""));
        fs::write(dir.path().join("a.log.valgrind.2"), "==2== Invalid read\n").unwrap();
        fs::write(dir.path().join("b.log.valgrind.3"), "==3== another test's\n").unwrap();
        assert_eq!(found(&log).unwrap().as_deref(), Some("==2== Invalid read\n"));
        assert_eq!(found(&log).unwrap(), None);
    }

    #[test]
    fn what_valgrind_says_of_itself_is_no_finding() {
        let text =
            "--7-- WARNING: unhandled amd64-linux syscall: 434\n--7-- You may be able to write your own handler.\n\n";
        assert_eq!(without_noise(text), "");
        assert_eq!(without_noise("==7== Invalid read of size 8\n"), "==7== Invalid read of size 8\n");
    }
}
