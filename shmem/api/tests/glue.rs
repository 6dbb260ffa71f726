//! The Rust glue compiles with implementations of the listed signatures.

use ntbring_shmem_api::{exports, implementations};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;

/// What the library defines for the glue.
const LIBRARY: &str = "\
#![allow(warnings)]
pub mod handles {
    #[derive(Clone, Copy)] #[repr(transparent)] pub struct Ctx(pub usize);
    impl Ctx { pub const DEFAULT: Ctx = Ctx(1); }
    #[derive(Clone, Copy)] #[repr(transparent)] pub struct Team(pub usize);
    #[repr(C)] pub struct TeamConfig { pub num_contexts: std::ffi::c_int }
    #[repr(C)] pub struct SessionConfig { pub total_ops: usize }
}
pub mod types {
    #[repr(C, align(16))] pub struct LongDouble(pub [u8; 16]);
    #[repr(C)] pub struct ComplexF32(pub [f32; 2]);
    #[repr(C)] pub struct ComplexF64(pub [f64; 2]);
    #[repr(C)] pub struct Bits128(pub [u64; 2]);
}
pub mod reduce {
    pub struct And; pub struct Or; pub struct Xor; pub struct Max; pub struct Min; pub struct Sum; pub struct Prod;
}
#[allow(unsafe_op_in_unsafe_fn)]
pub mod exports { include!(\"glue.in\"); }
";

#[test]
fn each_implementation_has_one_signature() {
    let list = implementations();
    let different = list.windows(2).find(|pair| pair[0].0 == pair[1].0);
    assert!(different.is_none(), "{different:?}");
}

#[test]
fn glue_compiles() {
    let mut modules: BTreeMap<&str, String> = BTreeMap::new();
    for (path, signature) in implementations() {
        let (module, name) = path.split_once("::").expect("a module and a function");
        let _ = writeln!(modules.entry(module).or_default(), "    pub unsafe fn {name}{signature} {{ todo!() }}");
    }
    let mut text = LIBRARY.to_string() + "pub mod calls {\n";
    for (module, functions) in modules {
        let _ = writeln!(text, "pub mod {module} {{\n    use crate::handles::*; use std::ffi::*;\n{functions}}}");
    }
    text.push_str("}\n");

    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(directory.path().join("glue.in"), exports()).expect("the glue is written");
    std::fs::write(directory.path().join("lib.rs"), text).expect("the library is written");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler)
        .args(["--edition=2021", "--crate-type=lib", "--emit=metadata", "-Dimproper_ctypes_definitions", "lib.rs"])
        .current_dir(directory.path())
        .output()
        .expect("the compiler starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let first: Vec<&str> = said.lines().take(40).collect();
    assert!(output.status.success(), "{}", first.join("\n"));
}
