//! Tests under valgrind's memcheck.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::paths;

/// How much more time tests get.
pub const SLOWER: u32 = 10;

/// What valgrind says of itself, and of system calls that it does not know and that fail under it.
const NOISE: &[&str] = &[
    "WARNING: unhandled amd64-linux syscall",
    "You may be able to write your own handler",
    "Read the file README_MISSING_SYSCALL_OR_IOCTL",
    "Nevertheless we consider this a bug",
    "it at http",
];

/// Has mpiexec start valgrind; to be followed by the program.
pub fn add(command: &mut Command, log: &Path) {
    command
        .args(["valgrind", "-q", "--error-limit=no"])
        .arg(format!("--suppressions={}", paths::root().join("tests/mpich/valgrind.supp").display()))
        .arg(format!("--log-file={}.valgrind.%p", log.display()))
        // It has a way to ask processors that valgrind does not emulate.
        .env("HWLOC_COMPONENTS", "-x86");
}

/// What valgrind has found in all ranks; its files are gone after this.
pub fn found(log: &Path) -> Result<String> {
    let name = log.file_name().context("a log has a name")?.to_string_lossy().into_owned() + ".valgrind.";
    let mut text = String::new();
    for entry in fs::read_dir(log.parent().context("a log has a directory")?)? {
        let path: PathBuf = entry?.path();
        if path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&name)) {
            text.push_str(&without_noise(&fs::read_to_string(&path)?));
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
    fn what_valgrind_says_of_itself_is_no_finding() {
        let text =
            "--7-- WARNING: unhandled amd64-linux syscall: 434\n--7-- You may be able to write your own handler.\n\n";
        assert_eq!(without_noise(text), "");
        assert_eq!(without_noise("==7== Invalid read of size 8\n"), "==7== Invalid read of size 8\n");
    }
}
