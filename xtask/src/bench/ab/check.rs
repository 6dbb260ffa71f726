//! Checks that an installation is the one to be measured: its library has the ABI version of its C side and is the
//! library that is loaded.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context, Result};

use crate::bench::compile;
use crate::process;

/// The macro of include/ntbring.h that holds the ABI version.
const VERSION: &str = "NTBRING_ABI_VERSION";

/// Fails if programs of this installation would not run or would load another library.
pub fn installation(prefix: &Path, dir: &Path) -> Result<()> {
    let library = prefix.join("lib/libntbring.so");
    let version = abi_of_library(&library, dir)?;
    if let Some(expected) = abi_of_c_side(prefix).filter(|expected| *expected != version) {
        bail!(
            "{} has ABI version {version}, but MPICH in {} was built for version {expected}: they do not fit",
            library.display(),
            prefix.display()
        );
    }
    let said = process::output(Command::new("ldd").arg(prefix.join("lib/libmpi.so")))?;
    let loaded = loaded(&said).with_context(|| format!("MPICH in {} does not load libntbring", prefix.display()))?;
    if fs::canonicalize(&loaded).ok() != fs::canonicalize(&library).ok() {
        bail!(
            "programs of {} would load {} instead of its own library: LD_LIBRARY_PATH or an rpath leads elsewhere",
            prefix.display(),
            loaded.display()
        );
    }
    Ok(())
}

/// Returns the ABI version that a library reports. `dir` is for the program that queries it.
pub fn abi_of_library(library: &Path, dir: &Path) -> Result<u32> {
    let program = dir.join("abi");
    compile::compile(Path::new("cc"), &["machine/abi.c"], &program, &dir.join("logs/abi.log"))?;
    let said = process::output(Command::new(&program).arg(library))?;
    said.trim()
        .parse()
        .with_context(|| format!("{} says \"{}\" instead of its ABI version", library.display(), said.trim()))
}

/// Returns the ABI version that an installation's C side was built for; None if it has no header of ntbring.
pub fn abi_of_c_side(prefix: &Path) -> Option<u32> {
    abi_of_header(&prefix.join("include/ntbring.h"))
}

/// Returns the ABI version that a header defines.
pub fn abi_of_header(header: &Path) -> Option<u32> {
    version_in(&fs::read_to_string(header).ok()?)
}

fn version_in(header: &str) -> Option<u32> {
    header.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("#define") && words.next() == Some(VERSION)).then(|| words.next()?.parse().ok())?
    })
}

/// Returns the path at which ldd has found the library.
fn loaded(ldd: &str) -> Option<PathBuf> {
    let line = ldd.lines().find_map(|line| line.trim().strip_prefix("libntbring.so => "))?;
    line.split(" (").next().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_paths_are_found() {
        assert_eq!(version_in("/* x */\n#define NTBRING_ABI_VERSION 18\n"), Some(18));
        assert_eq!(version_in("#define NTBRING_HOSTS_MAX 16\n"), None);
        let said = "\tlinux-vdso.so.1 (0x7ffd)\n\tlibntbring.so => /a b/lib/libntbring.so (0x7f3e)\n";
        assert_eq!(loaded(said), Some(PathBuf::from("/a b/lib/libntbring.so")));
        assert_eq!(loaded("\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n"), None);
    }

    #[test]
    fn what_is_no_library_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("libntbring.so");
        fs::write(&file, "text").unwrap();
        let error = format!("{:#}", abi_of_library(&file, dir.path()).unwrap_err());
        assert!(error.contains("libntbring.so"), "{error}");
    }
}
