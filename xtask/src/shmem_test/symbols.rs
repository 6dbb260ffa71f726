//! Checks of the installed library itself: what it exports and what it needs.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::setup::Installed;
use crate::ui::{self, Tally};

/// Runs the checks and prints a line for each.
pub fn check(installed: &Installed) -> Result<Tally> {
    let library = installed.mpi.prefix().join("lib/libntbshmem.so");
    let exported = names(&library, &["-D", "--defined-only"])?;
    let defined = names(&library, &["--defined-only"])?;
    let dynamic = process::output(Command::new("readelf").arg("-dW").arg(&library))?;
    let complaints = [
        ("library: exports what the table has", compare(&exported)),
        ("library: contains nothing of libntbring", own_only(&[&exported, &defined])),
        ("library: needs libntbring.so", needs(&dynamic, "libntbring.so")),
    ];
    let mut tally = Tally::default();
    for (what, complaint) in complaints {
        match complaint {
            None => tally.passed += 1,
            Some(why) => {
                println!("  {what}: FAILED: {why}");
                ui::failed(what);
                tally.failed += 1;
            }
        }
    }
    Ok(tally)
}

/// Returns the names that `nm` prints with these options.
fn names(library: &Path, options: &[&str]) -> Result<BTreeSet<String>> {
    let text = process::output(Command::new("nm").args(options).arg(library))?;
    Ok(text.lines().filter_map(|line| line.split_whitespace().nth(2)).map(str::to_string).collect())
}

/// Compares the exported names with those of the table.
fn compare(exported: &BTreeSet<String>) -> Option<String> {
    let table: BTreeSet<String> = ntbring_shmem_api::symbols().into_iter().collect();
    let missing: Vec<&str> = table.difference(exported).map(String::as_str).collect();
    let further: Vec<&str> = exported.difference(&table).map(String::as_str).collect();
    match missing.is_empty() && further.is_empty() {
        true => None,
        false => Some(format!("missing: {}; not in the table: {}", missing.join(" "), further.join(" "))),
    }
}

/// Returns a complaint about the first name that belongs to libntbring.
fn own_only(names: &[&BTreeSet<String>]) -> Option<String> {
    let foreign = names.iter().flat_map(|set| set.iter()).find(|name| name.starts_with("ntbring_"));
    foreign.map(|name| format!("it defines {name}"))
}

/// Returns a complaint unless the dynamic section asks for a library.
fn needs(dynamic: &str, library: &str) -> Option<String> {
    let is_needed = dynamic.lines().any(|line| line.contains("(NEEDED)") && line.contains(&format!("[{library}]")));
    (!is_needed).then(|| format!("{library} is not needed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_libraries_are_noticed() {
        let table: BTreeSet<String> = ntbring_shmem_api::symbols().into_iter().collect();
        assert_eq!(compare(&table), None);
        let mut less = table.clone();
        less.remove("shmem_init");
        assert!(compare(&less).unwrap().starts_with("missing: shmem_init;"));
        let more: BTreeSet<String> = table.iter().cloned().chain(["ntbring_open".to_string()]).collect();
        assert!(compare(&more).unwrap().ends_with("not in the table: ntbring_open"));
        assert_eq!(own_only(&[&table, &more]).unwrap(), "it defines ntbring_open");
        assert_eq!(own_only(&[&table]), None);
        let dynamic = " 0x1 (NEEDED)  Shared library: [libntbring.so]\n";
        assert_eq!(needs(dynamic, "libntbring.so"), None);
        assert!(needs(dynamic, "libmpi.so").is_some());
    }
}
