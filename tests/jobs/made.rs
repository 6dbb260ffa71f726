//! Programs and libraries that tests make.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes a launcher with a shell command for each of two hosts, in which `$*` starts the proxy. Returns its path.
pub fn launcher(dir: &Path, commands: [&str; 2]) -> String {
    let path = dir.join("launcher");
    let skip = "while [ \"$1\" != h0 ] && [ \"$1\" != h1 ]; do shift; done\nhost=$1; shift";
    let [first, second] = commands;
    fs::write(&path, format!("#!/bin/sh\n{skip}\n[ $host = h1 ] || {first}\n{second}\n")).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_string()
}

/// Makes the shared library `lib{name}.so` of C code. Returns its path.
pub fn library(dir: &Path, name: &str, code: &str) -> PathBuf {
    let (source, library) = (dir.join(format!("{name}.c")), dir.join(format!("lib{name}.so")));
    fs::write(&source, code).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status().unwrap();
    assert!(built.success());
    library
}
