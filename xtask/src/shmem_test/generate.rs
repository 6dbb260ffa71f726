//! The rows of the tables of tests: one line of C for each function of the interface that exists for many types.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use ntbring_shmem_api::family::Kind;
use ntbring_shmem_api::{functions, Function};

/// The table of each implementation: the file of its rows, without `.inc`.
const TABLES: &[(&str, &[&str])] = &[
    (
        "put",
        &[
            "rma::put",
            "rma::p",
            "rma::iput",
            "rma::ibput",
            "rma::put_nbi",
            "signals::put_signal",
            "signals::put_signal_nbi",
        ],
    ),
    ("get", &["rma::get", "rma::g", "rma::iget", "rma::ibget", "rma::get_nbi"]),
    ("atomic", &["atomics::*"]),
    ("wait", &["waiting::*"]),
    ("reduce", &["collectives::reduce", "collectives::inscan", "collectives::exscan"]),
    ("collective", &["collectives::*"]),
    ("active", &["active::*"]),
];

/// Writes a file of rows for each table into `dir`. Files that are up to date are left alone.
pub fn write(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    for (table, rows) in tables() {
        let (file, text) = (dir.join(format!("{table}.inc")), rows.concat());
        if fs::read_to_string(&file).is_ok_and(|old| old == text) {
            continue;
        }
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

fn tables() -> BTreeMap<&'static str, Vec<String>> {
    let mut tables: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for function in functions().iter().filter(|function| is_of_a_type(function)) {
        if let Some(table) = table_of(function.row.rust) {
            tables.entry(table).or_default().push(row(function));
        }
    }
    tables
}

/// Returns true if the function exists for several types, so that a table has it.
fn is_of_a_type(function: &Function) -> bool {
    !function.row.kinds.contains(&Some(Kind::Single))
}

/// Returns the table of an implementation.
fn table_of(rust: &str) -> Option<&'static str> {
    let module = rust.split("::").next().unwrap_or(rust);
    let has = |pattern: &&str| *pattern == rust || pattern.strip_suffix("::*") == Some(module);
    TABLES.iter().find(|(_, patterns)| patterns.iter().any(has)).map(|(table, _)| *table)
}

/// Returns the row of a function.
fn row(function: &Function) -> String {
    let context = if function.ctx { "context, " } else { "" };
    format!("ROW({}, {}, {}, {context})\n", shape(function), function.name, c_type(function))
}

/// Returns the name of what a function does.
fn shape(function: &Function) -> String {
    let (module, name) = function.row.rust.split_once("::").unwrap_or(("", function.row.rust));
    let name = function.row.operation.unwrap_or(name.trim_end_matches('_')).to_uppercase();
    match (module, function.row.operation) {
        ("atomics", _) => format!("ATOMIC_{name}"),
        ("active", _) => format!("ACTIVE_{name}"),
        (_, Some(_)) => format!("REDUCE_{name}"),
        _ => name,
    }
}

/// Returns the C type of a function's elements.
fn c_type(function: &Function) -> String {
    match (function.of, function.type_name.as_deref()) {
        (Some(of), _) => of.c.to_string(),
        (None, Some("128")) => "bits128".to_string(),
        (None, Some("mem") | None) => "unsigned char".to_string(),
        (None, Some(bits)) => format!("uint{bits}_t"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;

    #[test]
    fn every_function_is_in_a_table_or_in_a_program() {
        let dir = paths::root().join("tests/shmem");
        let programs: String = walkdir::WalkDir::new(dir)
            .into_iter()
            .flatten()
            .filter(|entry| entry.path().extension().is_some_and(|ending| ending == "c"))
            .map(|entry| fs::read_to_string(entry.path()).unwrap())
            .collect();
        let words: Vec<&str> = programs.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        let missing: Vec<String> = functions()
            .iter()
            .filter(|function| match is_of_a_type(function) {
                true => table_of(function.row.rust).is_none(),
                false => !words.contains(&function.name.as_str()),
            })
            .map(|function| function.name.clone())
            .collect();
        assert!(missing.is_empty(), "no test calls {missing:?}");
    }

    #[test]
    fn files_are_written_once() {
        let dir = paths::target().join("shmem-test/rows");
        write(&dir).unwrap();
        let time = || fs::metadata(dir.join("put.inc")).unwrap().modified().unwrap();
        let before = time();
        write(&dir).unwrap();
        assert_eq!(time(), before);
        assert!(tables().keys().eq(["active", "atomic", "collective", "get", "put", "reduce", "wait"].iter()));
    }

    #[test]
    fn rows_have_shape_name_type_and_context() {
        let find = |name: &str| row(functions().iter().find(|function| function.name == name).unwrap());
        assert_eq!(find("shmem_long_put"), "ROW(PUT, shmem_long_put, long, )\n");
        assert_eq!(find("shmem_ctx_put128_nbi"), "ROW(PUT_NBI, shmem_ctx_put128_nbi, bits128, context, )\n");
        assert_eq!(find("shmem_int_cswap"), "ROW(ATOMIC_COMPARE_SWAP, shmem_int_cswap, int, )\n");
        assert_eq!(find("shmem_uint_atomic_and"), "ROW(ATOMIC_AND, shmem_uint_atomic_and, unsigned int, )\n");
        assert_eq!(find("shmem_long_sum_to_all"), "ROW(ACTIVE_SUM, shmem_long_sum_to_all, long, )\n");
        assert_eq!(find("shmem_collectmem"), "ROW(COLLECT, shmem_collectmem, unsigned char, )\n");
    }
}
