//! Selects tests: patterns, expected failures, and CI's choice.

use std::fs;
use std::path::Path;

use anyhow::{anyhow, bail, Context, Result};

use crate::mpi::Layout;

/// A pattern that selects tests by the beginning of their id: `coll`, `coll/allred`, `coll/allred 4`, ...
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// Returns the pattern of a command-line argument or of a line of a file.
    pub fn new(text: &str) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        Self(words.join(" ").trim_end_matches('/').to_string())
    }

    /// Returns true if it selects the test with this id.
    pub fn matches(&self, id: &str) -> bool {
        id.strip_prefix(&self.0).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ' ']))
    }

    /// Returns the suite's directory that contains its tests.
    pub fn top(&self) -> &str {
        self.0.split(['/', ' ']).next().unwrap_or_default()
    }
}

/// Failures that are MPICH's own, one on each line: `PATTERN : REASON`, `PATTERN under NAME=VALUE : REASON` for a test
/// that fails only if all tests are run with that variable, or `PATTERN under lone-rank : REASON` for a test that fails
/// only where a host has a single rank and another host has several.
#[derive(Debug, Default)]
pub struct Expected(Vec<(Pattern, Reason)>);

/// The reason for which a test is expected to fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Explanation for the reader.
    pub text: String,
    /// Condition without which the test is expected to pass.
    pub under: Option<Condition>,
}

/// The condition under which a test fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// All tests are run with this variable and value.
    Variable(String, String),
    /// The test is run with a single rank on one host and several ranks on another.
    LoneRank,
}

impl Condition {
    fn new(text: &str) -> Option<Self> {
        match text.split_once('=') {
            None => (text == "lone-rank").then_some(Self::LoneRank),
            Some((name, value)) => Some(Self::Variable(name.to_string(), value.to_string())),
        }
    }
}

impl Reason {
    /// Returns a reason without a condition.
    pub fn always(text: String) -> Self {
        Self { text, under: None }
    }

    /// Returns true if its condition holds for a test with this layout, where all tests are run with these variables.
    pub fn holds(&self, env: &[(String, String)], layout: &Layout) -> bool {
        match &self.under {
            None => true,
            Some(Condition::Variable(name, value)) => env.iter().any(|(n, v)| (n, v) == (name, value)),
            Some(Condition::LoneRank) => layout.has_lone_rank(),
        }
    }
}

impl Expected {
    /// Reads the file, in which every line must give a reason.
    pub fn read(file: &Path) -> Result<Self> {
        let mut entries = Vec::new();
        for (number, line) in lines(file)? {
            let wrong = || {
                anyhow!("{}:{number}: expected \"dir/test np [under NAME=VALUE|lone-rank] : reason\"", file.display())
            };
            let (what, text) = line.split_once(" : ").ok_or_else(wrong)?;
            let text = text.trim().to_string();
            let (pattern, under) = match what.split_once(" under ") {
                None => (what, None),
                Some((pattern, condition)) => (pattern, Some(Condition::new(condition.trim()).ok_or_else(wrong)?)),
            };
            if text.is_empty() {
                return Err(wrong());
            }
            entries.push((Pattern::new(pattern), Reason { text, under }));
        }
        Ok(Self(entries))
    }

    /// Returns the reason for which this test is expected to fail, if there is one.
    pub fn reason(&self, id: &str) -> Option<&Reason> {
        self.0.iter().find(|(pattern, _)| pattern.matches(id)).map(|(_, reason)| reason)
    }
}

/// A selection of tests, from lines `run PATTERN`, `skip PATTERN` and `lists NAME...`. Of the lines that match a test
/// the last one decides.
#[derive(Debug, Default)]
pub struct Choice {
    rules: Vec<(bool, Pattern)>,
    lists: Vec<String>,
}

impl Choice {
    /// Reads the selection from a file.
    pub fn read(file: &Path) -> Result<Self> {
        let mut choice = Self::default();
        for (number, line) in lines(file)? {
            match line.split_once(' ') {
                Some(("run", pattern)) => choice.rules.push((true, Pattern::new(pattern))),
                Some(("skip", pattern)) => choice.rules.push((false, Pattern::new(pattern))),
                Some(("lists", names)) => choice.lists.extend(names.split_whitespace().map(str::to_string)),
                _ => bail!("{}:{number}: expected \"run\", \"skip\" or \"lists\", and an argument", file.display()),
            }
        }
        Ok(choice)
    }

    /// Returns true if this test, from the list of that name, is selected.
    pub fn includes(&self, list: &str, id: &str) -> bool {
        let rule = self.rules.iter().rev().find(|(_, pattern)| pattern.matches(id));
        self.lists.iter().any(|name| name == list) && rule.is_some_and(|(run, _)| *run)
    }

    /// Returns the patterns of its `run` lines.
    pub fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.rules.iter().filter(|(run, _)| *run).map(|(_, pattern)| pattern)
    }
}

/// Returns the lines that are neither empty nor comments, with their numbers.
fn lines(file: &Path) -> Result<Vec<(usize, String)>> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.split('#').next().unwrap_or_default().trim().to_string()))
        .filter(|(_, line)| !line.is_empty())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn patterns_match_whole_words() {
        let matches = |pattern: &str, id: &str| Pattern::new(pattern).matches(id);
        assert!(matches("coll", "coll/allred 4 -count=10"));
        assert!(matches("coll/", "coll/allred 4"));
        assert!(matches("coll/allred", "coll/allred 4 -count=10"));
        assert!(matches("coll/allred  4", "coll/allred 4 -count=10"));
        assert!(!matches("coll/allred 4 -count=1", "coll/allred 4 -count=10"));
        assert!(!matches("coll/allred", "coll/allred2 4"));
        assert!(!matches("co", "coll/allred 4"));
    }

    #[test]
    fn expected_failures_have_reasons() {
        let good =
            file("# why\na/b 2 : MPICH's ticket 1 # more\na/c under X=1 : needs X\na/d under lone-rank : alone\n");
        let expected = Expected::read(good.path()).unwrap();
        assert_eq!(expected.reason("a/b 2 x"), Some(&Reason::always("MPICH's ticket 1".to_string())));
        assert_eq!(expected.reason("a/b 3"), None);
        let set = |value: &str| [("X".to_string(), value.to_string())];
        let (even, uneven) = (Layout::spread(4, 2), Layout::spread(4, 3));
        let reason = expected.reason("a/c 4").unwrap();
        let holds = |env| reason.holds(env, &uneven);
        assert_eq!([holds(&[]), holds(&set("1")), holds(&set("2"))], [false, true, false]);
        assert_eq!([&even, &uneven].map(|layout| expected.reason("a/d 4").unwrap().holds(&[], layout)), [false, true]);
        for text in ["a/b 2 under X : needs X\n", "a/b 2 :  \n"] {
            assert!(Expected::read(file(text).path()).is_err(), "{text}");
        }
        let bad = Expected::read(file("a/b 2\n").path()).unwrap_err().to_string();
        assert!(bad.contains(":1: expected"), "{bad}");
    }

    #[test]
    fn of_the_choices_the_last_counts() {
        let file = file("lists testlist\nrun coll\nskip coll/slow\nrun coll/slow 2\n");
        let choice = Choice::read(file.path()).unwrap();
        assert!(choice.includes("testlist", "coll/a 4"));
        assert!(!choice.includes("testlist.cvar", "coll/a 4"));
        assert!(!choice.includes("testlist", "coll/slow 4"));
        assert!(choice.includes("testlist", "coll/slow 2"));
        assert!(!choice.includes("testlist", "pt2pt/a 2"));
    }
}
