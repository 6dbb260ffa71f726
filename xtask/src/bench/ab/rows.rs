//! Rows of `bench ab`: tests, medians, ratios, verdicts.

use serde::Serialize;

use super::instructions;
use super::pair::Pair;
use crate::bench::compare::rounded;
use crate::bench::figures::{median, number, size, smaller_is_better, Figures};
use crate::bench::jobs::{self, Job, Program, Shape, Who};
use crate::bench::states::{self, States, Wanted};
use crate::ui;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Relative difference of times or rates below which builds count as equal, whatever the spread.
const TOLERATED: f64 = 0.03;

/// The same for counts of instructions, which are repeatable.
const TOLERATED_COUNT: f64 = 0.01;

/// Least number of runs from which a spread is computed.
const RUNS_LEAST: usize = 3;

/// One row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name by which `--only` selects.
    pub name: String,
    /// Description for the table.
    shown: &'static str,
    /// The program that measures it; None if instructions are counted instead.
    program: Option<Program>,
    shape: Shape,
    test: &'static str,
    bytes: u64,
    unit: &'static str,
}

/// Returns all rows.
fn all() -> Vec<Row> {
    let short = |bytes| size(bytes).replace(' ', "");
    let row =
        |name: String, shown, program, shape, test, bytes, unit| Row { name, shown, program, shape, test, bytes, unit };
    let pair = |test, shown, program, bytes, unit| {
        row(format!("{test}_{}", short(bytes)), shown, Some(program), Shape::Pair, test, bytes, unit)
    };
    let mut rows: Vec<Row> = [8, 64, KIB, 4 * KIB, 64 * KIB, MIB]
        .map(|bytes| pair("latency", "latency", Program::P2p, bytes, "us"))
        .to_vec();
    rows.push(pair("rate", "message rate", Program::P2p, 8, "msg/s"));
    rows.extend([64 * KIB, MIB].map(|bytes| pair("bandwidth", "bandwidth", Program::P2p, bytes, "MB/s")));
    rows.push(pair("put", "put + flush", Program::Rma, 8, "us"));
    rows.push(pair("fetch_and_op", "fetch-and-op + flush", Program::Rma, 8, "us"));
    let coll = |name: &str, shown, test, bytes| {
        row(name.to_string(), shown, Some(Program::Coll), Shape::Hosts(4), test, bytes, "us")
    };
    rows.push(coll("barrier_4ranks", "barrier, 4 hosts", "barrier", 0));
    rows.push(coll("allreduce_8B_4ranks", "allreduce, 4 hosts", "allreduce", 8));
    rows.push(coll("alltoall_64KiB_4ranks", "alltoall, 4 hosts", "alltoall", 64 * KIB));
    let count = |test: &'static str, shown| {
        let bytes = instructions::BYTES;
        row(format!("{test}_{}", short(bytes)), shown, None, Shape::Pair, test, bytes, instructions::UNIT)
    };
    rows.push(count(instructions::MESSAGE, "instructions of a message"));
    let shown = ["- in MPI_Send", "- in MPI_Recv"];
    rows.extend(instructions::PARTS.iter().zip(shown).map(|((test, _), shown)| count(test, shown)));
    rows
}

/// Returns the names of all rows.
pub fn names() -> Vec<String> {
    all().into_iter().map(|row| row.name).collect()
}

/// Returns the rows whose name contains `only`.
pub fn chosen(only: Option<&str>) -> Vec<Row> {
    all().into_iter().filter(|row| only.is_none_or(|only| row.name.contains(only))).collect()
}

/// Returns the jobs that measure these rows, one for each.
pub fn jobs(rows: &[Row]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for row in rows {
        if let Some(program) = row.program {
            jobs::want(&mut jobs, Job::of_figure(program, row.shape, Who::Main, row.test, row.bytes));
        }
    }
    jobs
}

/// Returns true if one of these rows is a count of instructions.
pub fn count_instructions(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.program.is_none())
}

/// Judgement of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// NEW is worse by more than the tolerance and by more than the spread.
    Worse,
    /// NEW is better by more than both.
    Better,
    /// Neither of the two.
    Same,
}

/// A row with its figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    name: String,
    #[serde(skip)]
    shown: &'static str,
    bytes: u64,
    unit: &'static str,
    /// "lower" or "higher": the direction in which values are better.
    better: &'static str,
    old: Option<f64>,
    new: Option<f64>,
    /// Median of NEW over median of OLD.
    ratio: Option<f64>,
    /// Width of the middle half of the values over the median: of OLD and of NEW.
    spread: [Option<f64>; 2],
    /// Number of values that the medians are taken of: of OLD and of NEW.
    runs: [usize; 2],
    /// Half the round trip of a cache line between the first two cores in that state of the machine, in us; None if all
    /// runs count.
    cores_us: Option<f64>,
    verdict: Option<Verdict>,
}

/// Compares the values that were measured in one state of the machine, or all values if these are too few.
pub fn evaluate(rows: &[Row], figures: &Figures, states: &States, rounds: usize, names: Pair<&str>) -> Vec<Entry> {
    let one = |row: &Row| {
        let wanted = [names.old, names.new].map(|mpi| Wanted {
            mpi,
            test: row.test,
            ranks: row.shape.ranks(),
            bytes: row.bytes,
        });
        match states.best(&wanted, states::enough(rounds)) {
            Some(state) => Entry { cores_us: Some(rounded(state.cores_us)), ..entry(row, &state.figures, &wanted) },
            None => entry(row, figures, &wanted),
        }
    };
    rows.iter().map(one).collect()
}

fn entry(row: &Row, figures: &Figures, wanted: &[Wanted<'_>; 2]) -> Entry {
    let values = wanted.map(|one| figures.values(one.test, one.ranks, one.bytes, one.mpi).unwrap_or_default());
    let medians = values.map(|values| Some(median(values)).filter(|median| median.is_finite()));
    let spread = values.map(|values| (values.len() >= RUNS_LEAST).then(|| middle_half(values)));
    let ratio = medians[0].zip(medians[1]).map(|(old, new)| new / old);
    let smaller = smaller_is_better(row.unit);
    let tolerated = if row.program.is_none() { TOLERATED_COUNT } else { TOLERATED };
    let spreads = spread[0].zip(spread[1]);
    Entry {
        name: row.name.clone(),
        shown: row.shown,
        bytes: row.bytes,
        unit: row.unit,
        better: if smaller { "lower" } else { "higher" },
        old: medians[0].map(rounded),
        new: medians[1].map(rounded),
        ratio: ratio.map(rounded),
        spread: spread.map(|spread| spread.map(rounded)),
        runs: values.map(<[f64]>::len),
        cores_us: None,
        verdict: ratio.zip(spreads).map(|(ratio, (old, new))| verdict(ratio, smaller, tolerated.max(old).max(new))),
    }
}

/// Judges a ratio of NEW to OLD. Differences up to `tolerated` are ignored.
fn verdict(ratio: f64, smaller_is_better: bool, tolerated: f64) -> Verdict {
    let worse = if smaller_is_better { ratio } else { 1.0 / ratio };
    if worse > 1.0 + tolerated {
        Verdict::Worse
    } else if 1.0 / worse > 1.0 + tolerated {
        Verdict::Better
    } else {
        Verdict::Same
    }
}

/// Returns the width of the middle half of the values (from the first to the third quartile) over their median.
fn middle_half(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |part: f64| {
        let place = part * (sorted.len() - 1) as f64;
        let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
        below + (above - below) * place.fract()
    };
    (at(0.75) - at(0.25)) / median(values)
}

/// Formats the table for the terminal, with a line that counts the rows that are worse.
pub fn table(entries: &[Entry]) -> String {
    let header = ["test", "size", "OLD", "NEW", "NEW/OLD", "better is", "spread", "runs", "cores", ""];
    let rows: Vec<Vec<String>> = entries.iter().map(cells).collect();
    let worse = entries.iter().filter(|entry| entry.verdict == Some(Verdict::Worse)).count();
    let known = entries.iter().filter(|entry| entry.verdict.is_some()).count();
    format!("{}\n{worse} of {known} worse", ui::table(&header, &rows))
}

fn cells(entry: &Entry) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_string());
    let value = |value: Option<f64>| or_dash(value.map(|value| format!("{} {}", number(value), entry.unit)));
    let percent = |part: Option<f64>| or_dash(part.map(|part| format!("{:.1}%", 100.0 * part)));
    let verdict = match entry.verdict {
        Some(Verdict::Worse) => "WORSE",
        Some(Verdict::Better) => "better",
        Some(Verdict::Same) => "",
        None => "?",
    };
    vec![
        entry.shown.to_string(),
        if entry.bytes > 0 { size(entry.bytes) } else { "-".to_string() },
        value(entry.old),
        value(entry.new),
        or_dash(entry.ratio.map(|ratio| format!("{ratio:.3}"))),
        entry.better.to_string(),
        format!("{} {}", percent(entry.spread[0]), percent(entry.spread[1])),
        format!("{}/{}", entry.runs[0], entry.runs[1]),
        or_dash(entry.cores_us.map(|us| format!("{} us", number(us)))),
        verdict.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: Pair<&str> = Pair { old: "old", new: "new" };

    fn figures(test: &str, ranks: usize, bytes: u64, unit: &str, values: [&[f64]; 2]) -> Figures {
        let mut figures = Figures::default();
        for (mpi, values) in [NAMES.old, NAMES.new].iter().zip(values) {
            for value in values {
                let line = format!(r#"{{"test":"{test}","bytes":{bytes},"value":{value},"unit":"{unit}"}}"#);
                figures.add(mpi, ranks, &line);
            }
        }
        figures
    }

    fn one(name: &str, figures: &Figures) -> Entry {
        evaluate(&chosen(Some(name)), figures, &States::default(), 9, NAMES).remove(0)
    }

    #[test]
    fn the_direction_of_a_ratio_depends_on_the_unit() {
        let entry = one("latency_8B", &figures("latency", 2, 8, "us", [&[1.0, 1.0, 1.0], &[1.1, 1.1, 1.1]]));
        assert_eq!((entry.ratio, entry.verdict, entry.better), (Some(1.1), Some(Verdict::Worse), "lower"));
        let entry = one("rate_8B", &figures("rate", 2, 8, "msg/s", [&[1e6, 1e6, 1e6], &[1.1e6, 1.1e6, 1.1e6]]));
        assert_eq!((entry.ratio, entry.verdict, entry.better), (Some(1.1), Some(Verdict::Better), "higher"));
        let table = table(&[entry]);
        assert!(table.contains("better") && table.ends_with("0 of 1 worse"), "{table}");
    }

    #[test]
    fn a_difference_must_exceed_tolerance_and_spread() {
        let of = |ratio, smaller, tolerated| verdict(ratio, smaller, tolerated);
        assert_eq!([1.02, 1.04].map(|ratio| of(ratio, true, 0.03)), [Verdict::Same, Verdict::Worse]);
        assert_eq!([0.98, 0.96].map(|ratio| of(ratio, false, 0.03)), [Verdict::Same, Verdict::Worse]);
        assert_eq!([0.96, 1.04].map(|ratio| of(ratio, ratio < 1.0, 0.03)), [Verdict::Better; 2]);
        let noisy: &[f64] = &[0.8, 0.9, 1.0, 1.1, 1.2];
        let entry = one("put_8B", &figures("put", 2, 8, "us", [noisy, &[1.1; 5]]));
        assert_eq!((entry.spread, entry.verdict), ([Some(0.2), Some(0.0)], Some(Verdict::Same)));
        let counted = figures(instructions::MESSAGE, 2, 8, "instr", [&[1000.0; 3], &[1015.0; 3]]);
        assert_eq!(one("instructions_8B", &counted).verdict, Some(Verdict::Worse));
    }

    #[test]
    fn an_outlier_does_not_widen_the_spread() {
        assert!((middle_half(&[1.0, 2.0, 3.0, 4.0, 100.0]) - 2.0 / 3.0).abs() < 1e-9);
        assert!((middle_half(&[1.0, 2.0, 3.0, 4.0]) - 1.5 / 2.5).abs() < 1e-9);
        assert_eq!(middle_half(&[5.0]), 0.0);
    }

    #[test]
    fn what_is_missing_has_no_verdict() {
        let entry = one("barrier", &Figures::default());
        assert_eq!((entry.old, entry.ratio, entry.runs, entry.verdict), (None, None, [0, 0], None));
        let entry = one("barrier", &figures("barrier", 4, 0, "us", [&[1.0, 1.0], &[2.0, 2.0]]));
        assert_eq!((entry.ratio, entry.spread, entry.verdict), (Some(2.0), [None, None], None));
        let json = serde_json::to_string(&entry).unwrap();
        assert!(json.contains(r#""name":"barrier_4ranks""#) && json.contains(r#""verdict":null"#), "{json}");
    }

    #[test]
    fn only_what_is_chosen_is_run() {
        assert_eq!(jobs(&chosen(None)).len(), 14);
        assert_eq!(jobs(&chosen(Some("latency"))).len(), 6);
        let counted = chosen(Some("instructions"));
        assert_eq!((counted.len(), jobs(&counted).len(), count_instructions(&counted)), (3, 0, true));
        assert!(!count_instructions(&chosen(Some("bandwidth"))) && chosen(Some("nonsense")).is_empty());
        assert_eq!(jobs(&chosen(Some("alltoall")))[0].tests[0].to_string(), "alltoall=65536");
        assert!(names().contains(&"fetch_and_op_8B".to_string()));
    }
}
