//! Figures as tables: a row for each size, a column for each contestant.

use crate::bench::figures::{number, size, smaller_is_better, Figures, MACHINE};
use crate::ui;

/// The limit that the machine sets to a figure of an MPI.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The test of the machine that measures it.
    pub test: &'static str,
    /// The size of that test in bytes.
    pub bytes: u64,
    /// The factor that converts its value to the figure's unit.
    pub factor: f64,
}

/// Size in bytes of a cache line: a message that fits in one cannot be faster than the transfer of the line.
const IN_A_LINE: u64 = 64;

/// Returns the limit of a test of a pair, if there is one.
pub fn limit_of(test: &str, bytes: u64) -> Option<Limit> {
    let limit = |test, bytes, factor| Some(Limit { test, bytes, factor });
    match test {
        "latency" if bytes <= IN_A_LINE => limit("cacheline", 0, 1.0),
        "latency" => limit("raw_latency", bytes, 1.0),
        "bandwidth" => limit("raw_bandwidth", bytes, 1.0),
        // From MB/s to messages per second.
        "rate" => limit("raw_bandwidth", bytes, 1e6 / bytes as f64),
        _ => None,
    }
}

/// Returns the value of a limit, if it was measured.
pub fn limit_value(figures: &Figures, limit: &Limit) -> Option<f64> {
    figures.median(limit.test, 2, limit.bytes, MACHINE).map(|value| value * limit.factor)
}

/// Returns the factor by which the first value is better: above 1 if it is.
pub fn better(unit: &str, first: f64, other: f64) -> f64 {
    if smaller_is_better(unit) {
        other / first
    } else {
        first / other
    }
}

/// The content of a table.
pub struct Table {
    /// Title.
    pub title: String,
    /// Heads of the columns.
    pub header: Vec<String>,
    /// Rows of cells.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Formats the table for the terminal.
    pub fn text(&self) -> String {
        format!("{}:\n{}", self.title, ui::table(&self.header, &self.rows))
    }
}

/// Returns a table of a test's medians. The first contestant is compared with the others; the limit is the last column.
pub fn table(figures: &Figures, test: &str, ranks: usize, mpis: &[&str]) -> Table {
    let mpis: Vec<&str> = mpis.iter().copied().filter(|mpi| figures.has(test, ranks, mpi)).collect();
    let unit = figures.unit(test);
    let known = |bytes: &u64| mpis.iter().any(|mpi| figures.median(test, ranks, *bytes, mpi).is_some());
    let sizes: Vec<u64> = figures.sizes(test, ranks).into_iter().filter(known).collect();
    let limits: Vec<Option<f64>> =
        sizes.iter().map(|bytes| limit_of(test, *bytes).and_then(|limit| limit_value(figures, &limit))).collect();
    let limited = limits.iter().any(Option::is_some);

    let mut header = vec!["size".to_string()];
    header.extend(mpis.iter().map(ToString::to_string));
    header.extend(limited.then(|| "limit".to_string()));
    let rows: Vec<Vec<String>> = sizes
        .iter()
        .zip(limits)
        .map(|(bytes, limit)| {
            let first = mpis.first().and_then(|mpi| figures.median(test, ranks, *bytes, mpi));
            let compared = |value: f64| match first {
                Some(first) => format!("{} ({}x)", number(value), factor(better(unit, first, value))),
                None => number(value),
            };
            let mut row = vec![size(*bytes)];
            row.extend(mpis.iter().enumerate().map(|(index, mpi)| match figures.median(test, ranks, *bytes, mpi) {
                Some(value) if index == 0 => number(value),
                Some(value) => compared(value),
                None => "-".to_string(),
            }));
            row.extend(limited.then(|| limit.map_or("-".to_string(), compared)));
            row
        })
        .collect();
    let who = if mpis == [MACHINE] { String::new() } else { format!(", {ranks} ranks") };
    Table { title: format!("{test}{who}, {unit}"), header, rows }
}

/// Formats a factor with at least two significant digits, however small it is.
pub fn factor(ratio: f64) -> String {
    match ratio {
        _ if ratio < 0.1 => format!("{ratio:.3}"),
        _ if ratio < 10.0 => format!("{ratio:.2}"),
        _ => format!("{ratio:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(test: &str, bytes: u64, value: f64, unit: &str) -> String {
        format!("{{\"test\":\"{test}\",\"bytes\":{bytes},\"value\":{value},\"unit\":\"{unit}\"}}\n")
    }

    #[test]
    fn a_row_has_ratios_and_the_limit() {
        let mut figures = Figures::default();
        figures.add("a", 2, &line("latency", 8, 0.2, "us"));
        figures.add("b", 2, &line("latency", 8, 0.5, "us"));
        figures.add("b", 2, &line("latency", 1024, 0.5, "us"));
        figures.add(MACHINE, 2, &line("cacheline", 0, 0.1, "us"));
        let table = table(&figures, "latency", 2, &["a", "b", "not-there"]).text();
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["size", "a", "b", "limit"], "{table}");
        assert_eq!(rows[2], ["8", "B", "0.200", "0.500", "(2.50x)", "0.100", "(0.50x)"], "{table}");
        assert_eq!(rows[3], ["1", "KiB", "-", "0.500", "-"], "{table}");
    }

    #[test]
    fn better_is_above_one() {
        assert!((better("MB/s", 10.0, 5.0) - 2.0).abs() < 1e-9);
        assert!((better("us", 5.0, 10.0) - 2.0).abs() < 1e-9);
        assert_eq!([0.05, 1.234, 123.4].map(factor), ["0.050", "1.23", "123"]);
    }

    #[test]
    fn rates_are_limited_by_the_raw_window() {
        let mut figures = Figures::default();
        figures.add(MACHINE, 2, &line("raw_bandwidth", 8, 160.0, "MB/s"));
        let limit = limit_of("rate", 8).unwrap();
        assert!((limit_value(&figures, &limit).unwrap() - 20e6).abs() < 1.0);
        assert_eq!(limit_of("barrier", 0), None);
    }
}
