//! Compiles libntbring's C ABI into Rust, generates the exported functions from the table of the API, and makes a
//! library to link with in the place of libntbring.so, which another package builds.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=../include/ntbring.h");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let abi = bindgen::Builder::default()
        .header("../include/ntbring.h")
        .allowlist_item("(ntbring|NTBRING)_.*")
        .derive_default(true)
        .generate()
        .expect("include/ntbring.h must be valid C (libclang is needed to read it)")
        .to_string();
    fs::write(out.join("abi.rs"), &abi).expect("cargo's OUT_DIR must be writable");
    fs::write(out.join("exports.rs"), ntbring_shmem_api::exports()).expect("cargo's OUT_DIR must be writable");
    make_import_library(&out, &abi);
    println!("cargo::rustc-link-search=native={}", out.display());
    println!("cargo::rustc-link-lib=dylib=ntbring");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libntbshmem.so");
}

/// Makes a `libntbring.so` that has the symbols of the real one and nothing else, for the linker.
fn make_import_library(out: &Path, abi: &str) {
    let names = abi.split("pub fn ").skip(1).filter_map(|rest| rest.split('(').next());
    let source: String = names.map(|name| format!("void {name}(void) {{ __builtin_trap(); }}\n")).collect();
    let file = out.join("import.c");
    fs::write(&file, source).expect("cargo's OUT_DIR must be writable");
    let compiler = cc::Build::new().get_compiler();
    let library = out.join("libntbring.so");
    let args = ["-shared", "-fPIC", "-Wl,-soname,libntbring.so", "-o"];
    let status = compiler.to_command().args(args).arg(&library).arg(&file).status();
    assert!(status.is_ok_and(|status| status.success()), "the C compiler must be able to make a shared library");
}
