//! Histograms of all ranks together, as text.

use crate::columns::table;
use crate::reading::Rank;
use comfy_table::Table;
use ntbring_endpoint::{Histogram, Sizes, Times, TIMES};

/// Returns a table of the sizes of messages that all ranks have sent, by protocol; None if there are none.
pub fn sizes(ranks: &[Rank]) -> Option<Table> {
    let mut sums = Sizes::default();
    for Sizes { packed, chunked, rendezvous } in ranks.iter().map(|rank| &rank.figures.sizes) {
        sums.packed += packed;
        sums.chunked += chunked;
        sums.rendezvous += rendezvous;
    }
    let header = ["messages up to", "packed", "chunked", "rendezvous"].map(String::from).to_vec();
    rows(header, &sums.each(), size)
}

/// Returns a table of the times that operations of all ranks took; None if there are none.
pub fn times(ranks: &[Rank]) -> Option<Table> {
    let mut sums = Times::default();
    for times in ranks.iter().map(|rank| &rank.figures.times) {
        sums.0.iter_mut().zip(&times.0).for_each(|(sum, more)| *sum += more);
    }
    let header = ["times up to"].into_iter().chain(TIMES.iter().map(|kind| kind.name)).map(String::from).collect();
    rows(header, &sums.0.each_ref(), time)
}

/// Returns a table with a row for each class that is not empty everywhere.
fn rows(header: Vec<String>, histograms: &[&Histogram], name: fn(u64) -> String) -> Option<Table> {
    let mut table = table(header, 0);
    for class in Histogram::classes() {
        let counts = || histograms.iter().map(|histogram| histogram.0[class]);
        if counts().any(|count| count > 0) {
            table.add_row([name(Histogram::upto(class))].into_iter().chain(counts().map(|count| count.to_string())));
        }
    }
    (!table.is_empty()).then_some(table)
}

/// Returns a size in bytes, which is a power of two or 0, with a unit.
fn size(bytes: u64) -> String {
    let scale = bytes.checked_ilog2().unwrap_or(0) / 10;
    let unit = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][scale as usize];
    format!("{} {unit}", bytes >> (10 * scale))
}

/// Returns a time in microseconds with a unit.
fn time(us: u64) -> String {
    match us {
        0..10_000 => format!("{us} us"),
        10_000..10_000_000 => format!("{} ms", us / 1000),
        _ => format!("{} s", us / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!([0, 1, 512, 1024, 1 << 21, 1 << 62].map(size), ["0 B", "1 B", "512 B", "1 KiB", "2 MiB", "4 EiB"]);
        assert_eq!([1, 8192, 16384, 1 << 24].map(time), ["1 us", "8192 us", "16 ms", "16 s"]);
    }

    #[test]
    fn only_classes_that_were_seen_are_shown() {
        let mut seen = Histogram::default();
        [0, 8, 8, 1000].into_iter().for_each(|size| seen.count(size));
        let shown = rows(vec!["upto".into(), "seen".into(), "none".into()], &[&seen, &Histogram::default()], size);
        let text = shown.unwrap().to_string();
        let lines: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines, [["0", "B", "1", "0"], ["8", "B", "2", "0"], ["1", "KiB", "1", "0"]]);
        assert!(rows(vec!["upto".into(), "none".into()], &[&Histogram::default()], size).is_none());
    }
}
