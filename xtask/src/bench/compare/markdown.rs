//! Formats a comparison as a table in Markdown, for a page that quotes it.

use crate::bench::compare::entry::Entry;
use crate::bench::figures::number;
use crate::bench::tables::factor;

/// Returns the table, below what its figures must be quoted with. Measures without figures are omitted.
pub fn markdown(identity: &str, entries: &[Entry]) -> String {
    let mut text = format!("{identity}\n\n| measure | ntbring | best of the others | ratio | goal | spread |\n");
    text += "|---|---|---|---|---|---|\n";
    for entry in entries.iter().filter(|entry| entry.is_known()) {
        text += &format!("| {} |\n", cells(entry).join(" | "));
    }
    text
}

fn cells(entry: &Entry) -> [String; 6] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_string());
    let value = |value: Option<f64>| or_dash(value.map(|value| in_words(value, &entry.unit)));
    let peer = entry.peer.as_ref().map_or(String::new(), |peer| format!(" ({peer})"));
    let sign = if entry.better == "lower" { "<=" } else { ">=" };
    let missed = if entry.reached == Some(false) { ", missed" } else { "" };
    let percent = |value: Option<f64>| or_dash(value.map(|value| format!("{:.0} %", 100.0 * value)));
    [
        title(&entry.name),
        value(entry.ours),
        format!("{}{peer}", value(entry.best_peer)),
        or_dash(entry.ratio.map(factor)),
        or_dash(entry.to_reach.map(|ratio| format!("{sign} {ratio:.2}{missed}"))),
        format!("{}, {}", percent(entry.spread[0]), percent(entry.spread[1])),
    ]
}

/// Returns the name of a measure in words: `reduce_scatter_block_4KiB_2ranks` is `reduce scatter block, 4 KiB, 2 ranks`.
fn title(name: &str) -> String {
    let mut text = String::new();
    for part in name.split('_') {
        let digits = part.len() - part.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
        match part.split_at(digits) {
            ("", "unbound") => text += ", unbound",
            ("", word) if text.is_empty() => text += word,
            ("", word) => text += &format!(" {word}"),
            (_, rest) if rest.starts_with('x') => text += &format!(", {part}"),
            (count, unit) => text += &format!(", {count} {unit}"),
        }
    }
    text.replace("of own, ", "of own ")
}

/// Formats a value with a unit in which it has few digits.
fn in_words(value: f64, unit: &str) -> String {
    match unit {
        "MB/s" if value >= 1e3 => format!("{} GB/s", number(value / 1e3)),
        "msg/s" if value >= 1e6 => format!("{} M/s", number(value / 1e6)),
        "us" if value >= 1e3 => format!("{} ms", number(value / 1e3)),
        "KiB" if value >= 1024.0 => format!("{} MiB", number(value / 1024.0)),
        _ => format!("{} {unit}", number(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, ours: Option<f64>, unit: &str) -> Entry {
        Entry {
            name: name.to_string(),
            ours,
            best_peer: ours.map(|ours| 2.0 * ours),
            peer: ours.map(|_| "other".to_string()),
            ratio: ours.map(|_| 0.5),
            unit: unit.to_string(),
            better: "higher",
            to_reach: Some(1.05),
            reached: ours.map(|_| false),
            spread: [ours.map(|_| 0.031), None],
            ..Entry::default()
        }
    }

    #[test]
    fn a_row_has_what_a_reader_needs() {
        let entries = [entry("bandwidth_4KiB", Some(12_300.0), "MB/s"), entry("put_8B", None, "us")];
        let text = markdown("cpu: fast; commit: 1", &entries);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "cpu: fast; commit: 1");
        assert_eq!(
            lines[4..],
            ["| bandwidth, 4 KiB | 12.3 GB/s | 24.6 GB/s (other) | 0.50 | >= 1.05, missed | 3 %, - |"]
        );
    }

    #[test]
    fn names_are_put_into_words() {
        let titles = [
            ("reduce_scatter_block_64KiB_4ranks_unbound", "reduce scatter block, 64 KiB, 4 ranks, unbound"),
            ("barrier_2x2", "barrier, 2x2"),
            ("fetch_and_op_8B", "fetch and op, 8 B"),
            ("rate_128B_of_own_64B", "rate, 128 B of own 64 B"),
            ("relayed_gen3x8_1MiB", "relayed gen3x8, 1 MiB"),
        ];
        for (name, words) in titles {
            assert_eq!(title(name), words);
        }
        assert_eq!(in_words(2.5e6, "msg/s"), "2.50 M/s");
        assert_eq!(in_words(2048.0, "KiB"), "2.00 MiB");
        assert_eq!(in_words(0.125, "us"), "0.125 us");
    }
}
