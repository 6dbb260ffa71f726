//! The C headers.

use crate::constants::CONSTANTS;
use crate::family::Group;
use crate::function::{functions, Function};
use crate::types::{COMPLEX_DOUBLE, COMPLEX_FLOAT};
use crate::wrap::wrapped;
use crate::{cpp, generic};
use std::fmt::Write;
use std::path::Path;
use std::{fs, io};

/// All headers: path below the directory of headers, and contents.
pub fn headers() -> Vec<(&'static str, String)> {
    let all = functions();
    let of = |header: &str| -> Vec<Function> {
        all.iter().filter(|f| f.group.header == header && !f.row.hidden).cloned().collect()
    };
    let (main, extensions) = (of("shmem.h"), of("shmemx.h"));
    let both: Vec<Function> = main.iter().chain(&extensions).cloned().collect();
    vec![
        ("shmem.h", main_header(&main)),
        ("pshmem.h", profiling_header(&both)),
        ("shmemx.h", extension_header(&extensions)),
        ("mpp/shmem.h", forwarding("MPP_SHMEM_H", "shmem.h")),
        ("mpp/shmemx.h", forwarding("MPP_SHMEMX_H", "shmemx.h")),
    ]
}

/// Writes all headers below `dir`.
pub fn write_headers(dir: &Path) -> io::Result<()> {
    for (path, contents) in headers() {
        let path = dir.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, contents)?;
    }
    Ok(())
}

fn main_header(functions: &[Function]) -> String {
    let body = format!(
        "#include <stddef.h>\n#include <stdint.h>\n\n{}\n{}{}{}{}",
        constants(),
        extern_c(&format!("{}{}", declared_types(), prototypes(functions, |f| (f.prototype.clone(), &f.name)))),
        generic::old_calls(),
        generic::macros(functions),
        cpp::overloads(functions),
    );
    guarded("Interface of OpenSHMEM 1.6.", "SHMEM_H", &body)
}

fn profiling_header(functions: &[Function]) -> String {
    let list = prototypes(functions, |f| (f.profiling_prototype(), &f.name));
    let body = format!("#include \"shmem.h\"\n\n{}", extern_c(&list));
    guarded("OpenSHMEM's functions under a second name, for tools that wrap the first one.", "PSHMEM_H", &body)
}

fn extension_header(functions: &[Function]) -> String {
    let list = prototypes(functions, |f| (f.prototype.clone(), &f.name));
    let body = format!("#include \"shmem.h\"\n\n{}", extern_c(&list));
    guarded("Extensions of OpenSHMEM.", "SHMEMX_H", &body)
}

fn forwarding(guard: &str, header: &str) -> String {
    guarded("For programs that include it from here.", guard, &format!("#include \"../{header}\"\n"))
}

fn guarded(what: &str, guard: &str, body: &str) -> String {
    format!(
        "/* {what} Generated from the table in shmem/api: change it there. */\n#ifndef NTBRING_{guard}\n\
         #define NTBRING_{guard}\n\n{body}\n#endif\n"
    )
}

fn extern_c(body: &str) -> String {
    format!("#ifdef __cplusplus\nextern \"C\" {{\n#endif\n{body}\n#ifdef __cplusplus\n}}\n#endif\n")
}

/// All constants, then old names of some.
fn constants() -> String {
    let mut text = String::from("/* Constants */\n");
    for constant in CONSTANTS {
        let _ = writeln!(text, "#define {} {}", constant.name, constant.value);
    }
    text.push_str("\n/* Old names of constants (deprecated) */\n");
    for constant in CONSTANTS.iter().filter(|constant| constant.old) {
        let _ = writeln!(text, "#define _{} {}", constant.name, constant.name);
    }
    text
}

fn declared_types() -> String {
    format!(
        "\n/* Types */\n\
         typedef struct shmem_impl_ctx *shmem_ctx_t;\n\
         typedef struct shmem_impl_team *shmem_team_t;\n\n\
         typedef struct {{\n    int num_contexts;\n}} shmem_team_config_t;\n\n\
         typedef struct {{\n    size_t total_ops;\n}} shmem_ctx_session_config_t;\n\n\
         /* Complex numbers, without a warning in C++ */\n\
         #ifdef __GNUC__\n\
         __extension__ typedef double _Complex {COMPLEX_DOUBLE};\n\
         __extension__ typedef float _Complex {COMPLEX_FLOAT};\n\
         #else\n\
         typedef double _Complex {COMPLEX_DOUBLE};\n\
         typedef float _Complex {COMPLEX_FLOAT};\n\
         #endif\n"
    )
}

/// The prototypes that `of` makes, with the headings of their groups.
fn prototypes<'a>(functions: &'a [Function], of: impl Fn(&'a Function) -> (String, &'a str)) -> String {
    let mut text = String::new();
    let mut group: Option<&Group> = None;
    for function in functions {
        if group.is_none_or(|before| before.heading != function.group.heading) {
            let _ = writeln!(text, "\n/* {} */", function.group.heading);
            group = Some(function.group);
        }
        let (prototype, name) = of(function);
        if name == "shmem_global_exit" {
            text.push_str("#ifdef __GNUC__\n__attribute__((__noreturn__))\n#endif\n");
        }
        let mark = if function.row.deprecated { " /* deprecated */" } else { "" };
        let _ = writeln!(text, "{}", wrapped(&format!("{prototype};{mark}")));
    }
    text
}
