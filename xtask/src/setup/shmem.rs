//! Installation of the OpenSHMEM library beside MPI: library, headers, commands, descriptions for pkg-config and CMake.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::placement::install;
use super::stamp::Digest;
use crate::paths;

/// Products of the build, and their places in an installation.
const PRODUCTS: [(&str, &str); 4] = [
    ("libntbshmem.so", "lib/libntbshmem.so"),
    ("oshcc", "bin/oshcc"),
    ("oshrun", "bin/oshrun"),
    ("shmem_info", "bin/shmem_info"),
];

/// Other names of installed files: those that programs expect of any SHMEM library, and the C++ compiler's.
const LINKS: [(&str, &str); 4] =
    [("lib/libsma.so", "libntbshmem.so"), ("bin/oshc++", "oshcc"), ("bin/oshcxx", "oshcc"), ("bin/oshCC", "oshcc")];

/// Headers, below `shmem/include` and below `include` of an installation.
const HEADERS: [&str; 5] = ["shmem.h", "pshmem.h", "shmemx.h", "mpp/shmem.h", "mpp/shmemx.h"];

/// Installs what has changed below `prefix`, and adds it to the digest.
pub fn ensure(prefix: &Path, mut digest: Digest) -> Result<Digest> {
    for (from, to) in PRODUCTS {
        let from = paths::target().join("release").join(from);
        install(&from, &prefix.join(to))?;
        digest = digest.file(&from)?;
    }
    for (from, to) in LINKS {
        link(&prefix.join(from), to)?;
    }
    let source = paths::root().join("shmem");
    for header in HEADERS {
        install(&source.join("include").join(header), &prefix.join("include").join(header))?;
    }
    let packaging = source.join("packaging");
    install(&packaging.join("ntbshmem-config.cmake"), &prefix.join("lib/cmake/ntbshmem/ntbshmem-config.cmake"))?;
    let description = fs::read_to_string(packaging.join("ntbshmem.pc"))?;
    let description =
        description.replace("@PREFIX@", &prefix.display().to_string()).replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    let place = prefix.join("lib/pkgconfig/ntbshmem.pc");
    fs::create_dir_all(prefix.join("lib/pkgconfig"))?;
    fs::write(&place, description).with_context(|| format!("cannot write {}", place.display()))?;
    Ok(digest)
}

/// Makes a symbolic link unless it is there.
fn link(at: &Path, to: &str) -> Result<()> {
    if fs::read_link(at).is_ok_and(|present| present == Path::new(to)) {
        return Ok(());
    }
    paths::remove(at)?;
    std::os::unix::fs::symlink(to, at).with_context(|| format!("cannot make the link {}", at.display()))
}
