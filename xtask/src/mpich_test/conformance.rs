//! `mpich-test --all`: writes docs/conformance.md, the results of MPICH's suite.
//!
//! A run on one ring takes about an hour, and there are several rings. So each run writes a file in docs/conformance,
//! directory by directory, can be resumed if it was stopped, and the page is made from the files of all runs, of any
//! date.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::report::Counts;
use super::run::{Ran, Verdict};
use crate::setup::stamp::write_atomically;
use crate::ui::{self, Tally};

/// The part of a column's name that says that its tests were run two at a time.
const AT_ONCE: &str = ", 2 tests at once";

/// The results of all directories on one ring, with one MPI.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// The head of the column.
    name: String,
    /// The command that was run.
    command: String,
    /// The commits of ntbring that were tested: several if a run was stopped and resumed.
    versions: Vec<String>,
    /// True if all directories were run.
    finished: bool,
    /// The results of each directory, in the order in which they were run.
    directories: Vec<Directory>,
    /// The tests whose result was not a simple pass.
    remarks: Vec<Remark>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Directory {
    name: String,
    counts: Counts,
    /// The sum of the times of all its tests, in seconds.
    seconds: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Remark {
    kind: Kind,
    test: String,
    why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    Failed,
    ExpectedFailure,
    Skipped,
}

impl Column {
    /// Returns an empty column for a run of that command.
    pub fn new(name: String, command: String) -> Self {
        Self { name, command, versions: Vec::new(), finished: false, directories: Vec::new(), remarks: Vec::new() }
    }

    /// Returns true if a directory was run.
    pub fn has(&self, dir: &str) -> bool {
        self.directories.iter().any(|directory| directory.name == dir)
    }

    /// Adds the results of a directory, tested with that version.
    pub fn add(&mut self, version: &str, dir: &str, results: &[Ran]) {
        if self.versions.last().is_none_or(|last| last != version) {
            self.versions.push(version.to_string());
        }
        let seconds = (results.iter().map(|ran| ran.elapsed).sum::<Duration>().as_secs_f64() * 10.0).round() / 10.0;
        self.directories.push(Directory { name: dir.to_string(), counts: Counts::of(results), seconds });
        self.remarks.extend(results.iter().filter_map(remark));
    }

    /// Returns true if all directories were run.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Records that all directories were run.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// Returns the sum over all directories.
    pub fn tally(&self) -> Tally {
        self.directories.iter().map(|directory| directory.counts.tally()).sum()
    }

    /// Formats the time of the tests of some directories.
    fn time(&self, wanted: impl Fn(&str) -> bool) -> String {
        let seconds: f64 = self.directories.iter().filter(|dir| wanted(&dir.name)).map(|dir| dir.seconds).sum();
        ui::seconds(Duration::from_secs_f64(seconds))
    }

    /// Formats the counts of a directory, or of all directories, as a cell.
    fn cell(&self, dir: Option<&str>) -> String {
        let chosen = self.directories.iter().filter(|directory| dir.is_none_or(|dir| dir == directory.name));
        let (mut passed, mut run, mut expected) = (0, 0, 0);
        for Directory { counts, .. } in chosen {
            let tally = counts.tally();
            (passed, run) = (passed + tally.passed, run + tally.passed + tally.failed);
            expected += counts.expected();
        }
        match (run, expected) {
            (0, 0) => "-".to_string(),
            (_, 0) => format!("{passed}/{run}"),
            (_, n) => format!("{passed}/{run} +{n}"),
        }
    }
}

fn remark(ran: &Ran) -> Option<Remark> {
    let (kind, why) = match &ran.verdict {
        Verdict::Failed(why) => (Kind::Failed, why),
        Verdict::ExpectedFailure(why) => (Kind::ExpectedFailure, why),
        Verdict::Skipped(why) => (Kind::Skipped, why),
        Verdict::Passed | Verdict::UnexpectedPass(_) => return None,
    };
    Some(Remark { kind, test: ran.id.clone(), why: why.clone() })
}

/// Stores a column in `docs`, replacing an older one of that name, and rewrites the page.
pub fn keep(docs: &Path, column: &Column) -> Result<()> {
    let dir = docs.join("conformance");
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let mut text = serde_json::to_vec_pretty(column)?;
    text.push(b'\n');
    write_atomically(&file(docs, &column.name), &text)?;
    write_atomically(&docs.join("conformance.md"), page(&kept(&dir)?).as_bytes())
}

/// Returns the column in `docs` that an earlier run of the same name and command has written, if there is one.
pub fn left(docs: &Path, like: &Column) -> Result<Option<Column>> {
    let path = file(docs, &like.name);
    if !path.exists() {
        return Ok(None);
    }
    let column = read(&path)?;
    Ok((column.command == like.command).then_some(column))
}

fn file(docs: &Path, column: &str) -> PathBuf {
    docs.join("conformance").join(format!("{}.json", file_name(column)))
}

fn read(path: &Path) -> Result<Column> {
    let parsed = || -> Result<Column> { Ok(serde_json::from_slice(&fs::read(path)?)?) };
    parsed().with_context(|| format!("{} was not written by mpich-test", path.display()))
}

fn file_name(name: &str) -> String {
    let words: Vec<&str> =
        name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
    words.join("-").to_lowercase()
}

/// Returns all stored columns, in the order of their file names. A file that cannot be read is omitted with a warning,
/// so that the results of a run of hours are not lost because of it.
fn kept(dir: &Path) -> Result<Vec<Column>> {
    let mut columns = BTreeMap::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            match read(&path) {
                Ok(column) => _ = columns.insert(path, column),
                Err(error) => eprintln!("{error:#}; it is left out of the table"),
            }
        }
    }
    Ok(columns.into_values().collect())
}

fn page(columns: &[Column]) -> String {
    let mut text = "# Conformance\n\nThis page shows the results of MPICH's own test suite on the ring, for users and developers. \
                    `cargo xtask mpich-test --all` writes it; each column can be run by itself. If a test has fewer ranks than \
                    the ring has hosts, the ring has one host per rank.\n\nA cell is tests passed / tests run; `+n`: n more tests \
                    failed as expected, for the reasons below. The directories `util` (helpers of other tests) and `basic` \
                    (without a testlist in 4.0.2) have no tests that MPICH's own runner runs.\n\n"
        .to_string();
    if columns.iter().any(|column| column.name.contains(AT_ONCE)) {
        text.push_str(
            "Columns with \"2 tests at once\" have up to 8 processes of two tests of 4 ranks on the machine's \
                       cores.\n\n",
        );
    }
    let mut row = |name: &str, cell: &dyn Fn(&Column) -> String| {
        let cells: Vec<String> = columns.iter().map(cell).collect();
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    };
    row("directory", &|column| column.name.clone());
    row("---", &|_| "---".to_string());
    for dir in directories(columns) {
        row(dir, &|column| column.cell(Some(dir)));
    }
    row("**all**", &|column| column.cell(None));
    let by_all = |dir: &str| columns.iter().all(|column| column.has(dir));
    row("time of the tests", &|column| column.time(|_| true));
    row("in directories that are in all columns", &|column| column.time(by_all));
    text.push_str("\n| column | ntbring | run by |\n|---|---|---|\n");
    for column in columns {
        let stopped = if column.finished { "" } else { ", **not finished**" };
        let _ = writeln!(text, "| {}{stopped} | {} | `{}` |", column.name, column.versions.join(", "), column.command);
    }
    text.push_str(&list("Failures", columns, Kind::Failed));
    text.push_str(&list("Expected failures", columns, Kind::ExpectedFailure));
    text.push_str(&list("Not run", columns, Kind::Skipped));
    text
}

/// Returns the directories of all columns, in the order of their first appearance.
fn directories(columns: &[Column]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let names = columns.iter().flat_map(|column| &column.directories).map(|dir| dir.name.as_str());
    names.filter(|dir| seen.insert(*dir)).collect()
}

/// Formats a section of the tests of that kind; an empty text if there are none.
fn list(title: &str, columns: &[Column], kind: Kind) -> String {
    let mut found: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for column in columns {
        for remark in column.remarks.iter().filter(|remark| remark.kind == kind) {
            found.entry((&remark.test, &remark.why)).or_default().push(&column.name);
        }
    }
    if found.is_empty() {
        return String::new();
    }
    let mut text = format!("\n## {title}\n\n| test | on | reason |\n|---|---|---|\n");
    for ((test, why), names) in found {
        let _ = writeln!(text, "| `{test}` | {} | {} |", names.join(", "), why.replace('|', "\\|"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(id: &str, verdict: Verdict) -> Ran {
        let (id, layout, elapsed) = (id.to_string(), "2x1".to_string(), Duration::from_millis(500));
        Ran { id, layout, verdict, elapsed, log: PathBuf::new() }
    }

    fn column(name: &str, results: &[(&str, Vec<Ran>)]) -> Column {
        let mut column = Column::new(name.to_string(), format!("run on {name}"));
        results.iter().for_each(|(dir, ran)| column.add("abc", dir, ran));
        column.finish();
        column
    }

    #[test]
    fn the_page_has_every_directory_once_and_every_reason() {
        let coll = |verdict| ("coll", vec![ran("coll/a 2", Verdict::Passed), ran("coll/b 2", verdict)]);
        let skipped = ("io", vec![ran("io/c 1", Verdict::Skipped("memory".to_string()))]);
        let two = column("2 hosts", &[coll(Verdict::Failed("x|y".to_string()))]);
        let four = column("4 hosts", &[coll(Verdict::ExpectedFailure("ticket".to_string())), skipped]);

        let docs = tempfile::tempdir().unwrap();
        keep(docs.path(), &four).unwrap();
        // A second run on a ring replaces the first.
        keep(docs.path(), &column("2 hosts", &[])).unwrap();
        keep(docs.path(), &two).unwrap();
        let text = fs::read_to_string(docs.path().join("conformance.md")).unwrap();
        assert_eq!(text, page(&[two, four]));
        assert!(text.contains("| coll | 1/2 | 1/1 +1 |\n| io | - | - |\n| **all** | 1/2 | 1/1 +1 |"), "{text}");
        assert!(text.contains("| time of the tests | 1.0 s | 1.5 s |\n"), "{text}");
        assert!(text.contains("| in directories that are in all columns | 1.0 s | 1.0 s |\n"), "{text}");
        assert!(text.contains("| 2 hosts | abc | `run on 2 hosts` |"), "{text}");
        assert!(text.contains("| `coll/b 2` | 2 hosts | x\\|y |"), "{text}");
        assert!(text.contains("## Expected failures") && text.contains("## Not run"), "{text}");
        assert!(!page(&[]).contains("##") && page(&[]).contains("`basic`"));

        fs::write(docs.path().join("conformance/broken.json"), "{").unwrap();
        keep(docs.path(), &column("2 hosts", &[])).unwrap();
        assert!(fs::read_to_string(docs.path().join("conformance.md")).unwrap().contains("| 4 hosts | abc |"));
        assert!(left(docs.path(), &Column::new("broken".to_string(), String::new())).is_err());
    }

    #[test]
    fn a_run_that_was_stopped_is_resumed_by_the_same_command_only() {
        let docs = tempfile::tempdir().unwrap();
        let new = |command: &str| Column::new("2 hosts".to_string(), command.to_string());
        assert_eq!(left(docs.path(), &new("run")).unwrap(), None);

        let mut column = new("run");
        column.add("abc", "coll", &[ran("coll/a 2", Verdict::Passed)]);
        keep(docs.path(), &column).unwrap();
        let text = fs::read_to_string(docs.path().join("conformance.md")).unwrap();
        assert!(text.contains("| 2 hosts, **not finished** | abc | `run` |"), "{text}");
        assert_eq!(left(docs.path(), &new("run --placement 1")).unwrap(), None);

        let mut resumed = left(docs.path(), &new("run")).unwrap().unwrap();
        assert!(resumed.has("coll") && !resumed.has("io") && !resumed.is_finished());
        resumed.add("def", "io", &[ran("io/c 1", Verdict::Failed("why".to_string()))]);
        resumed.finish();
        keep(docs.path(), &resumed).unwrap();
        assert_eq!((resumed.tally().passed, resumed.tally().failed), (1, 1));
        let text = fs::read_to_string(docs.path().join("conformance.md")).unwrap();
        assert!(text.contains("| 2 hosts | abc, def | `run` |"), "{text}");
        assert_eq!(left(docs.path(), &new("run")).unwrap(), Some(resumed));
    }

    #[test]
    fn the_page_says_that_tests_at_once_share_the_cores() {
        let said = |name: &str| page(&[column(name, &[])]).contains("8 processes");
        assert!(said("4 hosts, seed 1, 2 tests at once, yaksa") && !said("4 hosts, seed 1"));
    }

    #[test]
    fn a_columns_file_is_named_after_it() {
        assert_eq!(file_name("4 hosts, seed 1"), "4-hosts-seed-1");
        assert_eq!(file_name("4 hosts, MPI in /usr"), "4-hosts-mpi-in-usr");
    }
}
