//! The Rust glue: `extern "C"` functions that call the generic implementations.

use crate::family::Contexts;
use crate::function::{functions, Function};
use std::fmt::Write;

/// First lines of the glue.
const USES: &str = "\
use crate::handles::{Ctx, SessionConfig, Team, TeamConfig};
use crate::types::{Bits128, ComplexF32, ComplexF64, LongDouble};
use std::ffi::{
    c_char, c_int, c_long, c_longlong, c_short, c_uint, c_ulong, c_ulonglong, c_ushort, c_void,
};
";

/// Source text of all functions and of their twins for tools, to be included in a module of the library.
///
/// Left out are those that pass or return a `long double` by value.
pub fn exports() -> String {
    let mut text = USES.to_string();
    for function in functions().iter().filter(|function| !function.by_value_long_double()) {
        // Writing to a string does not fail.
        let _ = write!(text, "\n{}{}", export(function, &function.name), export(function, &function.profiling_name()));
    }
    text
}

/// One function, exported as `symbol`.
fn export(function: &Function, symbol: &str) -> String {
    let named: Vec<_> = function.parameters.iter().filter(|p| !p.name.is_empty()).collect();
    let parameters: Vec<String> = named
        .iter()
        .map(|p| format!("{}: {}", rust_name(&p.name), rust_type(&p.template, function.rust_type)))
        .collect();
    let result = match function.row.result {
        "void" => String::new(),
        other => format!(" -> {}", rust_type(other, function.rust_type)),
    };

    let mut arguments = vec![format!("\"{}\"", function.name)];
    if function.row.contexts != Contexts::None && !function.ctx {
        arguments.push("Ctx::DEFAULT".to_string());
    }
    arguments.extend(named.iter().map(|p| rust_name(&p.name)));

    format!(
        "#[no_mangle]\npub unsafe extern \"C\" fn {symbol}({}){result} {{\n    crate::calls::{}({})\n}}\n",
        parameters.join(", "),
        implementation(function),
        arguments.join(", ")
    )
}

/// Paths and signatures of the implementations that the glue calls, sorted: module below `calls`, and function, then what follows the
/// name. `T` is the type, `O` the operation.
pub fn implementations() -> Vec<(&'static str, String)> {
    // Functions whose rows already have a type for `T` share the implementation of a typed family.
    let all = functions().into_iter().filter(|function| !function.row.rust.contains('<'));
    let mut list: Vec<(&'static str, String)> = all.map(|f| (f.row.rust, signature(&f))).collect();
    list.sort();
    list.dedup();
    list
}

/// Signature of the implementation of `function`, from its types on.
fn signature(function: &Function) -> String {
    let of = function.rust_type.map(|_| "T");
    let types = match (of, function.row.operation) {
        (Some(_), Some(_)) => "<T, O>",
        (Some(_), None) => "<T>",
        (None, _) => "",
    };
    let mut parameters = vec!["function: &'static str".to_string()];
    if function.row.contexts != Contexts::None && !function.ctx {
        parameters.push("ctx: Ctx".to_string());
    }
    let named = function.parameters.iter().filter(|p| !p.name.is_empty());
    parameters.extend(named.map(|p| format!("{}: {}", rust_name(&p.name), rust_type(&p.template, of))));
    let result = match function.row.result {
        "void" => String::new(),
        other => format!(" -> {}", rust_type(other, of)),
    };
    format!("{types}({}){result}", parameters.join(", "))
}

/// Path of the implementation, with its types.
fn implementation(function: &Function) -> String {
    let path = function.row.rust;
    match (function.rust_type, function.row.operation) {
        (Some(of), Some(operation)) => format!("{path}::<{of}, crate::reduce::{operation}>"),
        (Some(of), None) => format!("{path}::<{of}>"),
        (None, _) => path.to_string(),
    }
}

/// The Rust name of a parameter.
fn rust_name(c: &str) -> String {
    c.replace("logPE", "log_PE").to_lowercase()
}

/// The Rust type of a C type, in which `T` stands for `of`.
fn rust_type(c: &str, of: Option<&'static str>) -> String {
    let (constant, rest) = match c.strip_prefix("const ") {
        Some(rest) => (true, rest),
        None => (false, c),
    };
    let (base, pointer) = match rest.strip_suffix('*') {
        Some(base) => (base.trim(), true),
        None => (rest, false),
    };
    let base = match base {
        "T" => of.unwrap_or("c_void"),
        "void" => "c_void",
        "char" => "c_char",
        "int" => "c_int",
        "long" => "c_long",
        "size_t" => "usize",
        "ptrdiff_t" => "isize",
        "uint64_t" => "u64",
        "shmem_ctx_t" => "Ctx",
        "shmem_team_t" => "Team",
        "shmem_team_config_t" => "TeamConfig",
        "shmem_ctx_session_config_t" => "SessionConfig",
        other => unreachable!("no Rust type is known for {other}, which a row of the table has"),
    };
    match (pointer, constant) {
        (false, _) => base.to_string(),
        (true, false) => format!("*mut {base}"),
        (true, true) => format!("*const {base}"),
    }
}
