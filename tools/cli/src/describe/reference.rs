//! The pages docs/reference/settings.md and counters.md, from the tables of settings and counters.

use ntbring_endpoint::settings::TABLE;
use ntbring_endpoint::{COUNTERS, LINK_COUNTERS};
use ntbring_settings::Setting;
use std::fmt::Write;

/// The command that writes the pages.
const COMMAND: &str = "cargo xtask docs --reference";

const SETTINGS: &str = "\
This page lists all settings of ntbring. Each is an environment variable, which the processes read once, when they start
MPI or OpenSHMEM; [Tuning](../tuning.md) says which setting serves which goal. A variable that is not set has the value
of the tuned file ([`NTBRING_TUNED`](#ntbring_tuned)) or its default. A value that is not allowed, and a variable
`NTBRING_...` that does not exist, end the job with an error. `ntbring info --config` prints the same list with the
values in use and their origin.

Sizes may end in K, M or G (1024, 1024^2, 1024^3 bytes).
";

const COUNTERS_HEAD: &str = "\
This page lists all counters of ntbring. They count from the start of the job and never decrease. Sizes include MPICH's
headers. Messages between ranks of one host go through MPICH's own shared memory and are not counted.

| where | how counters appear there |
|---|---|
| `NTBRING_STATS=FILE` | a line of JSON for each rank when it leaves |
| `ntbring stats` | tables of a running job; `--json` prints lines as in that file |
| MPI_T | performance variables `ntbring_NAME`, of each process |

[Tuning](../tuning.md#how-to-measure) explains how to read them.
";

const FACTS: &str = "\
A line also holds facts: `rank`, `vci` (the index of the communication interface), `host`, `hosts` and `size` (the number
of hosts and of ranks), and `lane_bytes` (the size of the rank's smallest lane).
";

const LINKS: &str = "\
`links` has an entry for each of the two links of the rank's host, with `side` (`left` or `right`), `to` (the host at the
other end) and these counters:
";

const PEERS: &str = "\
`peers` has an entry for each rank to which this rank has sent messages:

| field | meaning |
|---|---|
| `rank`, `host` | the receiver and its host |
| `distance` | hops between the two hosts |
| `relayed` | true if hosts between relay the messages |
| `msgs`, `bytes` | messages and bytes sent |
";

/// Returns the page of settings: a section for each, so that others can refer to it.
pub fn settings() -> String {
    let mut page = head("Settings", SETTINGS);
    TABLE.settings().for_each(|setting| page += &section(setting));
    page
}

fn section(setting: &Setting) -> String {
    let Setting { name, default, unit, allowed, shared, meaning, tunable } = setting;
    let mut text = format!("\n## {name}\n\n{}.\n\n", linked(&sentence(meaning), ""));
    let mut row = |name: &str, value: &str| text += &format!("- {name}: {value}\n");
    row("default", &format!("`{default}`"));
    row("allowed", &escaped(allowed));
    row("unit", unit);
    if *shared {
        row("hosts", "all must have the same value");
    }
    if *tunable {
        row("tuned", "`ntbring tune` may choose the value");
    }
    text
}

/// Returns the page of counters.
pub fn counters() -> String {
    let mut page = head("Counters", COUNTERS_HEAD);
    page += "\n## Counters of a rank\n\n";
    page += &table(COUNTERS.iter().map(|counter| (counter.name, counter.meaning)));
    write!(page, "\n{FACTS}\n## Counters of a link\n\n{LINKS}\n").expect("a String can always be written");
    page += &table(LINK_COUNTERS.iter().map(|counter| (counter.name, counter.meaning)));
    page + "\n## Counters of a peer\n\n" + PEERS
}

fn head(title: &str, text: &str) -> String {
    format!("# {title}\n\n<!-- Made by `{COMMAND}` of the tables in the code. -->\n\n{text}")
}

fn table<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let meaning = |text: &str| linked(&escaped(text), "settings.md");
    let rows = rows.map(|(name, text)| format!("| `{name}` | {} |\n", meaning(text)));
    ["| counter | meaning |\n|---|---|\n".to_string()].into_iter().chain(rows).collect()
}

/// Returns a meaning as a sentence: with a capital letter, unless it begins with a name.
fn sentence(meaning: &str) -> String {
    let (first, rest) = meaning.split_at(meaning.chars().next().map_or(0, char::len_utf8));
    escaped(&(first.to_uppercase() + rest))
}

/// Returns a text in which settings and pages of the documentation are links; `page` is that of the settings, as seen
/// from the text.
fn linked(text: &str, page: &str) -> String {
    let separates = |letter: char| !(letter.is_ascii_alphanumeric() || "_/.-".contains(letter));
    let link = |piece: &str| {
        let word = piece.trim_end_matches(separates).trim_end_matches('.');
        let rest = &piece[word.len()..];
        match word.strip_prefix("docs/").and_then(|file| file.strip_suffix(".md")) {
            Some(name) => format!("[{name}](../{name}.md){rest}"),
            None if TABLE.settings().any(|setting| setting.name == word) => {
                format!("[`{word}`]({page}#{}){rest}", word.to_lowercase())
            }
            None => piece.to_string(),
        }
    };
    text.split_inclusive(separates).map(link).collect()
}

/// Returns a text without characters that Markdown or HTML would take for its own.
fn escaped(text: &str) -> String {
    text.replace('<', "&lt;").replace('|', "\\|").replace('*', "\\*")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    #[test]
    fn the_pages_of_the_documentation_are_up_to_date() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
        for (name, page) in [("settings.md", settings()), ("counters.md", counters())] {
            let kept = fs::read_to_string(folder.join(name)).unwrap_or_default();
            assert!(kept == page, "docs/reference/{name} differs from the table in the code: run `{COMMAND}`");
        }
    }

    #[test]
    fn every_setting_has_a_section_with_its_default() {
        let page = settings();
        for setting in TABLE.settings() {
            let start = page.find(&format!("\n## {}\n", setting.name)).expect(setting.name);
            let section = page[start + 4..].split("\n## ").next().unwrap();
            assert!(section.contains(&format!("- default: `{}`", setting.default)), "{section}");
        }
    }

    #[test]
    fn letters_of_markup_are_not_markup() {
        assert_eq!(sentence("a <b> | *c*"), "A &lt;b> \\| \\*c\\*");
    }

    #[test]
    fn settings_and_pages_are_links() {
        let text = linked("see NTBRING_LOG, NTBRING_NO and (docs/faults.md). NTBRING_LOG=x", "s.md");
        let log = "[`NTBRING_LOG`](s.md#ntbring_log)";
        assert_eq!(text, format!("see {log}, NTBRING_NO and ([faults](../faults.md)). {log}=x"));
    }
}
