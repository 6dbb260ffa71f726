//! Compiles the C ABI's header into Rust, so that both sides come from one file.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=include/ntbring.h");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    bindgen::Builder::default()
        .header("include/ntbring.h")
        .allowlist_item("(ntbring|NTBRING)_.*")
        .derive_default(true)
        .generate()
        .expect("include/ntbring.h must be valid C (libclang is needed to read it)")
        .write_to_file(out.join("abi.rs"))
        .expect("cargo's OUT_DIR must be writable");
}
