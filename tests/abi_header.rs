//! `include/ntbring.h` is plain C that compiles without warnings, also as C++.

use std::path::Path;
use std::process::Command;

#[test]
fn the_header_compiles_as_c_and_cpp_without_warnings() {
    let dir = tempfile::tempdir().unwrap();
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/ntbring.h");
    for (language, standard) in [("c", "c99"), ("c", "c11"), ("c++", "c++11")] {
        let compiler = cc::Build::new()
            .cpp(language == "c++")
            .target("x86_64-unknown-linux-gnu")
            .host("x86_64-unknown-linux-gnu")
            .opt_level(0)
            .out_dir(dir.path())
            .cargo_metadata(false)
            .get_compiler();
        let output = Command::new(compiler.path())
            .args(["-x", language, &format!("-std={standard}")])
            .args(["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"])
            .arg(&header)
            .output();
        match output {
            // The full profile needs a C++ compiler; the quick one does not, so a missing one is skipped.
            Err(_) if language == "c++" => continue,
            Err(error) => panic!("{}: {error}", compiler.path().display()),
            Ok(out) => assert!(out.status.success(), "{standard}: {}", String::from_utf8_lossy(&out.stderr)),
        }
    }
}
