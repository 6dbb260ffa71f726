//! Whole test suites that Debian ships as executables linked with its mpich: those of OpenCoarrays (one-sided
//! operations, atomics, teams) and of ScaLAPACK (communicators, broadcasts and reductions along rows and columns).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::bench::{fresh, Bench};
use crate::setup::packages;

const LIMIT: Duration = Duration::from_secs(120);
const HOSTS: &str = "h0,h1,h2,h3";
/// Number of ranks, unless [`RANKS_OF`] has another one.
const RANKS: u32 = 4;

/// Programs that are not run, as prefixes of their names, and the reasons. The first five fail or hang with Debian's
/// mpich, too, the second of them not always.
const NOT_RUN: &[(&str, &str)] = &[
    ("image_fail", "needs failed images to be detected, which Debian's coarray library does not support"),
    ("increment_my_neighbor", "puts into memory that its neighbour may not have initialized yet"),
    ("issue-488-multi-dim-cobounds", "reads uninitialized values"),
    ("xsllt", ROUNDED_APART),
    ("xdllt", ROUNDED_APART),
    ("xCbtest", "reads files that the package does not have"),
    ("xFbtest", "reads files that the package does not have"),
];

const ROUNDED_APART: &str = "may leave a loop earlier at some ranks than at others, because of rounding errors";

/// Programs of ScaLAPACK, as endings of their names, that are tried up to [`TRIES`] times. BLACS receives partial sums
/// from any source and adds them in the order of arrival, so that no two runs have the same rounding errors, with any
/// MPI. xssyevr has once reported its own result as wrong, probably for that reason.
const ROUNDED: [&str; 2] = ["syevr", "heevr"];
const TRIES: u32 = 3;

/// Programs that need another number of ranks.
const RANKS_OF: &[(&str, u32)] =
    &[("sync_team", 8), ("team_number", 8), ("issue-515-mimic-mpi-gatherv", 2), ("issue-552-send_by_ref-singleton", 2)];

/// Runs the tests of OpenCoarrays, each of which ends with an error status if it finds an error.
pub fn coarrays(bench: &mut Bench) -> Result<()> {
    packages::install(&["libcoarrays-mpich-dev"])?;
    let folder = libraries().join("open-coarrays/mpich/bin");
    let tests = fs::read_dir(&folder)
        .with_context(|| format!("no {}", folder.display()))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let tests = tests.into_iter().find(|path| path.to_string_lossy().ends_with("-tests"));
    let tests = tests.with_context(|| format!("{} has no tests of OpenCoarrays", folder.display()))?;
    let place = fresh(&bench.place.join("at"))?;
    for name in programs(&tests, "")? {
        run(bench, &tests, &name, &place, |_| None)?;
    }
    Ok(())
}

/// Runs the tests of ScaLAPACK, which read their parameters from files and print their results.
pub fn scalapack(bench: &mut Bench) -> Result<()> {
    packages::install(&["scalapack-mpi-test"])?;
    let tests = libraries().join("scalapack/mpich-tests");
    let place = fresh(&bench.place.join("at"))?;
    for entry in fs::read_dir(&tests).with_context(|| format!("no {}", tests.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "dat") {
            fs::copy(&path, place.join(path.file_name().context("a file has a name")?))?;
        }
    }
    for name in programs(&tests, "x")? {
        run(bench, &tests, &name, &place, complaint)?;
    }
    Ok(())
}

/// Returns Debian's directory of architecture-dependent libraries.
fn libraries() -> PathBuf {
    Path::new("/usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH))
}

/// Returns the first failure that the output of a test of ScaLAPACK reports, if any.
fn complaint(text: &str) -> Option<String> {
    if let Some(wrong) = text.lines().find(|line| is_wrong(line)) {
        return Some(format!("it said {:?}", wrong.trim()));
    }
    let right = |word: &str| ["passed", "PASSED", "Passed"].iter().any(|right| word.starts_with(right));
    let tested = text.split_whitespace().any(right);
    (!tested).then(|| "it has not reported any result as correct".to_string())
}

/// Returns true if a line of the output of a test of ScaLAPACK reports a wrong result: a row whose result is that word,
/// or a count of failures.
fn is_wrong(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let counted = words.get(1..5) == Some(&["tests", "completed", "and", "failed"][..]) && words[0] != "0";
    let skipped = words.get(1..6) == Some(&["tests", "skipped", "for", "lack", "of"][..]) && words[0] != "0";
    counted || skipped || words.iter().any(|&word| word == "FAILED" || word == "Failed")
}

/// Returns the names of the files in a folder that begin with `prefix` and have no extension.
fn programs(folder: &Path, prefix: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && name.starts_with(prefix) && !name.contains('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn run(bench: &mut Bench, tests: &Path, name: &str, place: &Path, judge: fn(&str) -> Option<String>) -> Result<()> {
    if let Some((_, why)) = NOT_RUN.iter().find(|(start, _)| name.starts_with(start)) {
        println!("  {name:<40} not run: it {why}");
        return Ok(());
    }
    let ranks = RANKS_OF.iter().find(|(wanting, _)| *wanting == name).map_or(RANKS, |(_, ranks)| *ranks);
    let mut command = bench.exec(HOSTS, ranks);
    command.current_dir(place).arg(tests.join(name));
    let rounded = ROUNDED.iter().any(|end| name.ends_with(end));
    bench.judged(name, &mut command, LIMIT, if rounded { TRIES } else { 1 }, judge)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_tests_nothing_does_not_pass() {
        assert_eq!(complaint("  500  50    2    2     0.43 PASSED\n"), None);
        assert!(complaint("  12 tests skipped because of illegal input values.\n").is_some());
        assert!(complaint("PASSED\n   1 tests completed and failed residual checks.\n").is_some());
    }

    #[test]
    fn what_scalapack_says_is_understood() {
        for right in [
            "    0 tests completed and failed residual checks.",
            "  240 tests completed and passed residual checks.",
            "WALL    13    13   4     9    5    4    1     0.00     0.00    12.57 PASSED",
            "    not computed or that a test failed.  RESULT : passed; or an indication of",
            "",
        ] {
            assert!(!is_wrong(right), "{right}");
        }
        for wrong in [
            "    2 tests completed and failed residual checks.",
            "WALL    13    13   4     9    5    4    1     0.00     0.00    12.57 FAILED",
            "Failed 0.856E-03-0.100E+01    24     8   2   2",
            "    3 tests skipped for lack of memory.",
        ] {
            assert!(is_wrong(wrong), "{wrong}");
        }
    }
}
