//! The figures of all rounds, and statistics of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One line of a benchmark's output.
#[derive(Debug, Deserialize)]
struct Line {
    test: String,
    bytes: u64,
    value: f64,
    unit: String,
}

/// The identity of a figure.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Name of the test in the program.
    pub test: String,
    /// Number of ranks that take part.
    pub ranks: usize,
    /// Size in bytes.
    pub bytes: u64,
    /// The contestant, or [`MACHINE`].
    pub mpi: String,
}

/// The name under which the limits of the machine are stored.
pub const MACHINE: &str = "machine";

/// The name of the raw window's figures that were measured in the rounds of `bench efficiency`.
pub const RAW_WINDOW: &str = "raw-window";

/// One row of the file of `--json`.
#[derive(Debug, Deserialize, Serialize)]
pub struct Row {
    mpi: String,
    test: String,
    ranks: usize,
    bytes: u64,
    unit: String,
    median: f64,
    values: Vec<f64>,
}

/// The values of each figure, one for each round.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    values: BTreeMap<Key, Vec<f64>>,
    units: BTreeMap<String, String>,
}

impl Figures {
    /// Adds the figures of a benchmark's output and returns their number. Lines that are not JSON are remarks and are
    /// ignored.
    pub fn add(&mut self, mpi: &str, ranks: usize, output: &str) -> usize {
        self.add_as(mpi, ranks, "", output)
    }

    /// Adds figures in the same way, with an ending to the names of their tests.
    pub fn add_as(&mut self, mpi: &str, ranks: usize, suffix: &str, output: &str) -> usize {
        let lines = output.lines().filter_map(|text| serde_json::from_str::<Line>(text).ok());
        let mut count = 0;
        for line in lines.filter(|line| line.value.is_finite()) {
            let test = line.test + suffix;
            self.units.insert(test.clone(), line.unit);
            let key = Key { test, ranks, bytes: line.bytes, mpi: mpi.to_string() };
            self.values.entry(key).or_default().push(line.value);
            count += 1;
        }
        count
    }

    /// Adds a single figure that has no size.
    pub fn push(&mut self, mpi: &str, ranks: usize, test: &str, value: f64, unit: &str) {
        self.push_sized(Key { test: test.to_string(), ranks, bytes: 0, mpi: mpi.to_string() }, value, unit);
    }

    /// Adds a single figure.
    pub fn push_sized(&mut self, key: Key, value: f64, unit: &str) {
        self.units.insert(key.test.clone(), unit.to_string());
        self.values.entry(key).or_default().push(value);
    }

    /// Returns all values of one figure.
    pub fn values(&self, test: &str, ranks: usize, bytes: u64, mpi: &str) -> Option<&[f64]> {
        let key = Key { test: test.to_string(), ranks, bytes, mpi: mpi.to_string() };
        self.values.get(&key).map(Vec::as_slice)
    }

    /// Returns the median of one figure.
    pub fn median(&self, test: &str, ranks: usize, bytes: u64, mpi: &str) -> Option<f64> {
        self.values(test, ranks, bytes, mpi).map(median)
    }

    /// Returns the unit of a test.
    pub fn unit(&self, test: &str) -> &str {
        self.units.get(test).map_or("", String::as_str)
    }

    /// Returns the tests that have figures of a contestant, with their numbers of ranks.
    pub fn tests(&self) -> Vec<(String, usize)> {
        let mut tests: Vec<_> = self.values.keys().map(|key| (key.test.clone(), key.ranks)).collect();
        tests.dedup();
        tests
    }

    /// Returns the sizes for which a test has figures, of any contestant.
    pub fn sizes(&self, test: &str, ranks: usize) -> Vec<u64> {
        let of_test = self.values.keys().filter(|key| key.test == test && key.ranks == ranks);
        let mut sizes: Vec<u64> = of_test.map(|key| key.bytes).collect();
        sizes.dedup();
        sizes
    }

    /// Returns true if a contestant has any figure of this test.
    pub fn has(&self, test: &str, ranks: usize, mpi: &str) -> bool {
        self.values.keys().any(|key| key.test == test && key.ranks == ranks && key.mpi == mpi)
    }

    /// Converts the figures to rows of a file.
    pub fn rows(&self) -> Vec<Row> {
        let row = |(key, values): (&Key, &Vec<f64>)| Row {
            mpi: key.mpi.clone(),
            test: key.test.clone(),
            ranks: key.ranks,
            bytes: key.bytes,
            unit: self.unit(&key.test).to_string(),
            median: median(values),
            values: values.clone(),
        };
        self.values.iter().map(row).collect()
    }

    /// Converts the rows of a file to figures.
    pub fn of_rows(rows: Vec<Row>) -> Self {
        let mut figures = Self::default();
        for row in rows {
            figures.units.insert(row.test.clone(), row.unit);
            let key = Key { test: row.test, ranks: row.ranks, bytes: row.bytes, mpi: row.mpi };
            figures.values.insert(key, row.values);
        }
        figures
    }
}

/// Returns true if smaller is better, as for times, memory and instructions; for all other units larger is better.
pub fn smaller_is_better(unit: &str) -> bool {
    matches!(unit, "us" | "ms" | "s" | "KiB" | "tests" | "instr")
}

/// Returns the middle value, or the mean of the two in the middle.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[count / 2],
        count => (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0,
    }
}

/// Returns the spread of values: largest less smallest, over the median.
pub fn spread(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::MIN, f64::max);
    let smallest = values.iter().copied().fold(f64::MAX, f64::min);
    (largest - smallest) / median(values)
}

/// Formats a value with its significant digits.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1e5 => format!("{:.2}M", value / 1e6),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Formats a size in bytes with a unit.
pub fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(bytes: u64, value: f64) -> String {
        format!("{{\"test\":\"latency\",\"bytes\":{bytes},\"value\":{value},\"unit\":\"us\"}}\n")
    }

    #[test]
    fn output_is_read_with_remarks_and_broken_lines() {
        let mut figures = Figures::default();
        let output = format!("a remark\n{}{{\"test\":\"lat\n{}", line(8, 0.5), line(16, 0.75));
        assert_eq!(figures.add("a", 2, &output), 2);
        assert_eq!(figures.add("a", 2, "nothing\n"), 0);
        assert_eq!(figures.add("b", 2, &line(8, 0.25)), 1);
        let mut unbound = Figures::default();
        unbound.add_as("a", 2, "_unbound", &line(8, 0.5));
        assert_eq!(unbound.tests(), [("latency_unbound".to_string(), 2)]);
        assert_eq!(unbound.unit("latency_unbound"), "us");
        assert_eq!(figures.sizes("latency", 2), [8, 16]);
        assert_eq!(figures.unit("latency"), "us");
        assert_eq!(figures.median("latency", 2, 8, "b"), Some(0.25));
        assert_eq!(figures.median("latency", 4, 8, "b"), None);
        assert_eq!(figures.tests(), [("latency".to_string(), 2)]);
        assert!(figures.has("latency", 2, "a") && !figures.has("latency", 2, "c"));
    }

    #[test]
    fn rows_keep_every_value() {
        let mut figures = Figures::default();
        for value in [0.2, 0.1, 0.9] {
            figures.add("a", 2, &line(8, value));
        }
        let text = serde_json::to_string(&figures.rows()).unwrap();
        assert!(text.contains("\"median\":0.2"), "{text}");
        let again = Figures::of_rows(serde_json::from_str(&text).unwrap());
        assert_eq!(again.values("latency", 2, 8, "a"), Some(&[0.2, 0.1, 0.9][..]));
        assert_eq!(again.unit("latency"), "us");
    }

    #[test]
    fn medians_and_spreads() {
        assert!((median(&[4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < 1e-9);
        assert!((spread(&[1.0, 2.0, 3.0]) - 1.0).abs() < 1e-9);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn numbers_and_sizes_are_short() {
        assert_eq!([0.1234, 1.234, 12.34, 1234.5, 8_765_432.0].map(number), ["0.123", "1.23", "12.3", "1234", "8.77M"]);
        assert_eq!([0, 8, 1024, 1536, 4 << 20].map(size), ["0 B", "8 B", "1 KiB", "1536 B", "4 MiB"]);
    }
}
