//! `mpich-test --all`: docs/conformance.md, which says what of MPICH's suite passes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::report::Counts;
use super::run::{Ran, Verdict};
use crate::setup::stamp::write_atomically;
use crate::ui;

/// All directories on one number of hosts.
pub struct Round {
    /// As a column is headed.
    pub layout: String,
    /// Directory by directory.
    pub results: Vec<(String, Vec<Ran>)>,
}

/// Writes the page. `how` is the command and what it was run with.
pub fn write(file: &Path, how: &str, rounds: &[Round]) -> Result<()> {
    write_atomically(file, page(how, rounds).as_bytes())
}

fn page(how: &str, rounds: &[Round]) -> String {
    let mut text = format!(
        "# Conformance\n\nMPICH's own test suite on the ring. This page is written by\n\n    {how}\n\n\
         A cell is tests passed / tests run; `+n`: n more failed as expected, for reasons below.\n\n| directory |"
    );
    for round in rounds {
        let _ = write!(text, " {} |", round.layout);
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(rounds.len()));
    text.push('\n');
    for dir in directories(rounds) {
        let cells: Vec<String> = rounds.iter().map(|round| cell(round, Some(dir))).collect();
        let _ = writeln!(text, "| {dir} | {} |", cells.join(" | "));
    }
    let all: Vec<String> = rounds.iter().map(|round| cell(round, None)).collect();
    let _ = writeln!(text, "| **all** | {} |", all.join(" | "));
    let times: Vec<String> = rounds.iter().map(time).collect();
    let _ = writeln!(text, "| time of the tests | {} |", times.join(" | "));
    text.push_str(&list("Failures", rounds, |verdict| match verdict {
        Verdict::Failed(why) => Some(why),
        _ => None,
    }));
    text.push_str(&list("Expected failures", rounds, |verdict| match verdict {
        Verdict::ExpectedFailure(why) => Some(why),
        _ => None,
    }));
    text.push_str(&list("Not run", rounds, |verdict| match verdict {
        Verdict::Skipped(why) => Some(why),
        _ => None,
    }));
    text
}

/// Of all rounds, in the order in which they came.
fn directories(rounds: &[Round]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let names = rounds.iter().flat_map(|round| &round.results).map(|(dir, _)| dir.as_str());
    names.filter(|dir| seen.insert(*dir)).collect()
}

fn tests<'a>(round: &'a Round, dir: Option<&'a str>) -> impl Iterator<Item = &'a Ran> + 'a {
    round.results.iter().filter(move |(name, _)| dir.is_none_or(|dir| dir == name)).flat_map(|(_, ran)| ran)
}

fn cell(round: &Round, dir: Option<&str>) -> String {
    let counts = Counts::of(&tests(round, dir).cloned().collect::<Vec<_>>());
    let tally = counts.tally();
    let expected = match counts.expected() {
        0 => String::new(),
        n => format!(" +{n}"),
    };
    format!("{}/{}{expected}", tally.passed, tally.passed + tally.failed)
}

fn time(round: &Round) -> String {
    ui::seconds(tests(round, None).map(|ran| ran.elapsed).sum::<Duration>())
}

/// A section of those tests of which `why` knows a reason; nothing if there are none.
fn list(title: &str, rounds: &[Round], why: impl Fn(&Verdict) -> Option<&String>) -> String {
    let mut found: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for round in rounds {
        for ran in tests(round, None) {
            if let Some(why) = why(&ran.verdict) {
                found.entry((&ran.id, why)).or_default().push(&round.layout);
            }
        }
    }
    if found.is_empty() {
        return String::new();
    }
    let mut text = format!("\n## {title}\n\n| test | on | reason |\n|---|---|---|\n");
    for ((id, why), layouts) in found {
        let _ = writeln!(text, "| `{id}` | {} | {} |", layouts.join(", "), why.replace('|', "\\|"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn ran(id: &str, verdict: Verdict) -> Ran {
        Ran {
            id: id.to_string(),
            layout: "2x1".to_string(),
            verdict,
            elapsed: Duration::from_millis(500),
            log: PathBuf::new(),
        }
    }

    #[test]
    fn the_page_has_every_directory_once_and_every_reason() {
        let coll = |verdict| ("coll".to_string(), vec![ran("coll/a 2", Verdict::Passed), ran("coll/b 2", verdict)]);
        let rounds = [
            Round { layout: "2 hosts".to_string(), results: vec![coll(Verdict::Failed("x|y".to_string()))] },
            Round {
                layout: "4 hosts".to_string(),
                results: vec![
                    coll(Verdict::ExpectedFailure("ticket".to_string())),
                    ("io".to_string(), vec![ran("io/c 1", Verdict::Skipped("memory".to_string()))]),
                ],
            },
        ];
        let text = page("the command", &rounds);
        assert!(text.contains("| coll | 1/2 | 1/1 +1 |\n| io | 0/0 | 0/0 |\n| **all** | 1/2 | 1/1 +1 |"), "{text}");
        assert!(text.contains("| `coll/b 2` | 2 hosts | x\\|y |"), "{text}");
        assert!(text.contains("## Expected failures") && text.contains("## Not run"), "{text}");
        assert!(!page("x", &[]).contains("##"));
    }
}
