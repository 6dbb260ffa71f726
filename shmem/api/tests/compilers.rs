//! The headers in C and C++: every function by name, every name for all types with every type of its set.

use ntbring_shmem_api::{functions, headers, write_headers, Function};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const STRICT: &[&str] = &["-Wall", "-Wextra", "-Wpedantic", "-Werror"];
const C: &[&str] = &["c99", "c11", "c17"];
const CPP: &[&str] = &["c++11", "c++17", "c++20"];

/// Directory with the headers and the hand-written prototypes.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    write_headers(directory.path()).expect("the headers are written");
    let prototypes = include_str!("c/prototypes.h");
    std::fs::write(directory.path().join("prototypes.h"), prototypes).expect("the file is written");
    directory
}

/// The compilers of this machine for C and for C++.
fn compilers() -> Vec<(&'static str, &'static [&'static str])> {
    let all = [("cc", C), ("c++", CPP), ("clang", C), ("clang++", CPP)];
    all.into_iter().filter(|(name, _)| Command::new(name).arg("--version").output().is_ok()).collect()
}

/// Runs a compiler on a source text; other arguments than the standard of the language are `more`.
fn compile(directory: &Path, compiler: &str, standard: &str, text: &str, more: &[&str]) {
    let source = directory.join(if standard.starts_with("c++") { "test.cpp" } else { "test.c" });
    std::fs::write(&source, text).expect("the source is written");
    let mut command = Command::new(compiler);
    command.arg(format!("-std={standard}")).args(STRICT).args(more).arg("-I").arg(directory).arg(&source);
    let output = command.output().expect("the compiler starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let first: Vec<&str> = said.lines().take(30).collect();
    assert!(output.status.success(), "{compiler} -std={standard}:\n{}", first.join("\n"));
}

/// A pointer of the exact type of every function, also of those that the header does not declare.
fn pointers() -> String {
    let mut text = String::from("#include <prototypes.h>\n#include <shmemx.h>\n#include <pshmem.h>\n");
    for (n, function) in functions().iter().filter(|function| !function.row.hidden).enumerate() {
        let types: Vec<&str> = function.parameters.iter().map(|p| p.c.as_str()).collect();
        let types = if types.is_empty() { "void".to_string() } else { types.join(", ") };
        for (letter, name) in [("f", function.name.clone()), ("p", function.profiling_name())] {
            let _ = writeln!(text, "{} (*{letter}{n})({types}) = {name};", function.result);
        }
    }
    text
}

#[test]
fn every_function_has_its_prototype() {
    let directory = directory();
    let text = pointers();
    for (compiler, standards) in compilers() {
        for standard in standards {
            compile(directory.path(), compiler, standard, &text, &["-fsyntax-only"]);
        }
    }
}

#[test]
fn every_header_stands_alone() {
    let directory = directory();
    for (path, _) in headers() {
        let text = format!("#include <{path}>\n#include <{path}>\nint main(void) {{ return 0; }}\n");
        compile(directory.path(), "cc", "c11", &text, &["-fsyntax-only"]);
        compile(directory.path(), "c++", "c++11", &text, &["-fsyntax-only"]);
        let text = format!("extern \"C\" {{\n#include <{path}>\n}}\nint main() {{ return 0; }}\n");
        compile(directory.path(), "c++", "c++11", &text, &["-fsyntax-only"]);
    }
}

/// A program that defines all functions which names for all types lead to, calls each name with each type of its
/// set, and fails if another function was called.
fn calls() -> String {
    let all: Vec<Function> = functions();
    let mut text = String::from(
        "#include <shmem.h>\n#include <stdio.h>\n#include <string.h>\n\
         static const char *called;\nstatic int wrong;\n\
         static void expect(const char *name)\n{\n    if (strcmp(called, name) != 0) {\n        \
         printf(\"%s instead of %s\\n\", called, name);\n        wrong = 1;\n    }\n}\n\
         #ifdef __cplusplus\nextern \"C\" {\n#endif\n",
    );
    let mut tests = String::new();
    let mut number = 0;
    for function in &all {
        let (Some(generic), Some(of), Some(set)) = (function.row.generic, function.of, function.row.set()) else {
            continue;
        };
        let distinct = set.distinct();
        if distinct.contains(&of) {
            define(&mut text, function);
        }
        let chosen = distinct.iter().find(|t| t.base == of.base).expect("each C type is in the list");
        let expected = function.name.replacen(&format!("_{}_", of.name), &format!("_{}_", chosen.name), 1);
        // In C++ this is the C function of the same name, which there are only overloads beside.
        let same = matches!(generic, "shmem_wait" | "shmem_wait_until") && of.base == "long";
        test(&mut tests, number, generic, function, if same { "LONG_WAIT(\"%\")" } else { "\"%\"" }, &expected);
        number += 1;
    }
    for name in ["shmem_sync", "shmem_team_sync", "shmem_wait", "shmem_wait_until", "shmem_n_pes"] {
        define(&mut text, all.iter().find(|f| f.name == name).expect("the function is in the table"));
    }
    text.push_str(
        "#ifdef __cplusplus\n}\n#define LONG_WAIT(name) called\n#else\n#define LONG_WAIT(name) name\n#endif\n",
    );
    text.push_str(&tests);
    text.push_str("int main(void)\n{\n    long psync[SHMEM_SYNC_SIZE];\n    int nested = 1;\n");
    for n in 0..number {
        let _ = writeln!(text, "    test{n}();");
    }
    text.push_str(
        "    (void) shmem_sync(SHMEM_TEAM_WORLD);\n    expect(\"shmem_team_sync\");\n\
         \x20   shmem_sync(0, 0, 1, psync);\n    expect(\"shmem_sync\");\n\
         \x20   shmem_p(&nested, shmem_g(&nested, shmem_g(&nested, 0)), shmem_g(SHMEM_CTX_DEFAULT, &nested, 0));\n\
         \x20   expect(\"shmem_int_p\");\n\
         #ifndef __cplusplus\n    (void) num_pes();\n    expect(\"shmem_n_pes\");\n#endif\n\
         \x20   return wrong;\n}\n",
    );
    text
}

/// Defines `function`, which stores its name.
fn define(text: &mut String, function: &Function) {
    let head = function.prototype.replacen(&function.name, &format!("({})", function.name), 1);
    let _ = write!(text, "{head}\n{{\n    called = \"{}\";\n", function.name);
    for parameter in &function.parameters {
        let _ = writeln!(text, "    (void) {};", parameter.name);
    }
    let _ = writeln!(text, "{}}}", if function.result == "void" { "" } else { "    return 0;\n" });
}

/// A function that calls `generic` with the arguments of `function`; `name` is what `%` in `expectation` stands for.
fn test(text: &mut String, n: usize, generic: &str, function: &Function, expectation: &str, name: &str) {
    let _ = writeln!(text, "static void test{n}(void)\n{{");
    let mut arguments = Vec::new();
    for parameter in &function.parameters {
        let (c, name) = (&parameter.c, &parameter.name);
        if let Some(to) = c.strip_suffix(" *") {
            // Zeros by static storage: complex numbers have no other initialiser in both languages.
            let _ = writeln!(text, "    static {} {name}[1];", to.trim_start_matches("const "));
            let qualified = c.starts_with("const ");
            arguments.push(if qualified { format!("({c}) {name}") } else { name.clone() });
        } else {
            let _ = writeln!(text, "    {c} {name} = 0;");
            arguments.push(name.clone());
        }
    }
    let call = format!("{generic}({})", arguments.join(", "));
    if function.result == "void" {
        let _ = writeln!(text, "    {call};");
    } else {
        let c = &function.result;
        let _ = writeln!(text, "    {c} result = {call};\n    (void) result;");
        text.push_str("#ifdef __cplusplus\n");
        let _ = writeln!(text, "    {c} *exact = true ? nullptr : new decltype({call})(0);\n    (void) exact;");
        let _ = writeln!(text, "#else\n    _Static_assert(_Generic({call}, {c}: 1, default: 0), \"{call}\");\n#endif");
    }
    let _ = writeln!(text, "    expect({});\n}}", expectation.replace('%', name));
}

#[test]
fn names_for_all_types_lead_to_the_right_functions() {
    let directory = directory();
    let text = calls();
    let program: PathBuf = directory.path().join("test");
    let more = ["-o", program.to_str().expect("a path in UTF-8")];
    for (compiler, standards) in compilers() {
        for standard in standards.iter().filter(|standard| **standard != "c99") {
            compile(directory.path(), compiler, standard, &text, &more);
            let output = Command::new(&program).output().expect("the program starts");
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{compiler} -std={standard}:\n{said}");
        }
    }
}
