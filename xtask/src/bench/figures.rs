//! The figures of all rounds, and the tables made of them.

use std::collections::BTreeMap;

use anyhow::{bail, Context, Result};
use serde::{Deserialize, Serialize};

use crate::ui;

/// One line of a benchmark's output.
#[derive(Debug, Deserialize)]
struct Line {
    test: String,
    bytes: u64,
    value: f64,
    unit: String,
}

/// One row of the JSON that `--json` writes.
#[derive(Serialize)]
struct Row<'a> {
    mpi: &'a str,
    test: &'a str,
    bytes: u64,
    unit: &'a str,
    median: f64,
    values: &'a [f64],
}

/// Values by test, size and MPI, one a round.
#[derive(Debug, Default)]
pub struct Figures {
    values: BTreeMap<(String, u64, String), Vec<f64>>,
    units: BTreeMap<String, String>,
}

impl Figures {
    /// Takes a benchmark's output: JSON lines. Other lines are remarks of the MPI.
    pub fn add(&mut self, mpi: &str, output: &str) -> Result<()> {
        let mut any = false;
        for text in output.lines().filter(|line| line.starts_with('{')) {
            let line: Line = serde_json::from_str(text).with_context(|| format!("cannot understand: {text}"))?;
            self.units.insert(line.test.clone(), line.unit);
            let key = (line.test, line.bytes, mpi.to_string());
            self.values.entry(key).or_default().push(line.value);
            any = true;
        }
        if !any {
            bail!("the benchmark printed no figures with {mpi}");
        }
        Ok(())
    }

    /// A test's medians: a row a size, a column an MPI. The first MPI is compared with the others.
    pub fn table(&self, test: &str, mpis: &[&str]) -> String {
        let unit = self.units.get(test).map_or("", String::as_str);
        let mut header = vec!["bytes".to_string()];
        header.extend(mpis.iter().map(ToString::to_string));
        let mut sizes: Vec<u64> =
            self.values.keys().filter(|(name, _, _)| name == test).map(|(_, bytes, _)| *bytes).collect();
        sizes.dedup();
        let rows: Vec<Vec<String>> = sizes
            .iter()
            .map(|bytes| {
                let of = |mpi: &str| self.median(test, *bytes, mpi);
                let first = mpis.first().and_then(|mpi| of(mpi));
                let mut row = vec![bytes.to_string()];
                row.extend(mpis.iter().enumerate().map(|(index, mpi)| {
                    let Some(value) = of(mpi) else {
                        return "-".to_string();
                    };
                    let ratio = first.filter(|_| index > 0).map(|first| better(unit, first, value));
                    let ratio = ratio.map_or(String::new(), |ratio| format!(" ({}x)", factor(ratio)));
                    format!("{}{ratio}", number(value))
                }));
                row
            })
            .collect();
        format!("{test}, {unit}:\n{}", ui::table(&header, &rows))
    }

    /// All values as JSON.
    pub fn json(&self) -> Result<String> {
        let rows: Vec<Row> = self
            .values
            .iter()
            .map(|((test, bytes, mpi), values)| Row {
                mpi,
                test,
                bytes: *bytes,
                unit: self.units.get(test).map_or("", String::as_str),
                median: median(values),
                values,
            })
            .collect();
        Ok(serde_json::to_string_pretty(&rows)?)
    }

    fn median(&self, test: &str, bytes: u64, mpi: &str) -> Option<f64> {
        let key = (test.to_string(), bytes, mpi.to_string());
        self.values.get(&key).map(|values| median(values))
    }
}

/// How much better the first value is: above 1 if it is. Of times the smaller is better.
fn better(unit: &str, first: f64, other: f64) -> f64 {
    if unit == "us" {
        other / first
    } else {
        first / other
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[count / 2],
        count => (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0,
    }
}

/// As many digits as mean something.
fn number(value: f64) -> String {
    if value < 100.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.0}")
    }
}

/// Two digits at least, however bad it looks.
fn factor(ratio: f64) -> String {
    match ratio {
        _ if ratio < 0.1 => format!("{ratio:.3}"),
        _ if ratio < 10.0 => format!("{ratio:.2}"),
        _ => format!("{ratio:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratios() {
        let mut figures = Figures::default();
        for value in ["0.2", "0.1", "0.9"] {
            let line = format!("{{\"test\":\"latency\",\"bytes\":8,\"value\":{value},\"unit\":\"us\",\"peer\":1}}\n");
            figures.add("a", &format!("a remark\n{line}")).unwrap();
        }
        figures.add("b", "{\"test\":\"latency\",\"bytes\":8,\"value\":0.5,\"unit\":\"us\"}\n").unwrap();
        let table = figures.table("latency", &["a", "b", "c"]);
        let row = table.lines().last().unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words, ["8", "0.20", "0.50", "(2.50x)", "-"], "{table}");
        assert!(figures.add("a", "nothing\n").is_err());
        assert!((better("MB/s", 10.0, 5.0) - 2.0).abs() < 1e-9);
        assert!((median(&[1.0, 2.0, 3.0, 4.0]) - 2.5).abs() < 1e-9);
        assert!(figures.json().unwrap().contains("\"median\": 0.2"));
    }
}
