//! `bench compare`: ntbring against the best of the others, measure by measure.

use serde::Serialize;

use crate::bench::contestants::{ON_UCX, OURS};
use crate::bench::figures::{number, size, smaller_is_better, spread, Figures, MACHINE};
use crate::bench::jobs::{self, Job, Program, Shape, Who};
use crate::bench::states::{States, Wanted};
use crate::bench::stored::Stored;
use crate::bench::tables::{factor, limit_of, limit_value, Limit};
use crate::ui;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// With whom a measure is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Than {
    /// The best of all other MPIs.
    Best,
    /// The best of these.
    Of(&'static [&'static str]),
    /// One figure: whose, its test, its size.
    Figure(&'static str, &'static str, u64),
}

/// One line of the comparison.
#[derive(Clone, Debug)]
pub struct Measure {
    name: String,
    program: Program,
    shape: Shape,
    who: Who,
    /// Whose figure it is.
    of: &'static str,
    test: &'static str,
    bytes: u64,
    than: Than,
    /// The ratio that is wanted: at most, where the smaller is better, else at least.
    to_reach: f64,
    limit: Option<Limit>,
    /// What is wanted of the ratio to the limit.
    of_limit_to_reach: Option<f64>,
}

/// What is printed of a measure.
#[derive(Debug, PartialEq, Serialize)]
pub struct Entry {
    pub(super) name: String,
    pub(super) ours: Option<f64>,
    pub(super) best_peer: Option<f64>,
    pub(super) peer: Option<String>,
    pub(super) ratio: Option<f64>,
    pub(super) limit: Option<f64>,
    pub(super) unit: String,
    /// "lower" or "higher" is better, of value and ratio.
    pub(super) better: &'static str,
    pub(super) to_reach: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) of_limit: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) of_limit_to_reach: Option<f64>,
    pub(super) reached: Option<bool>,
    /// Largest less smallest value of the rounds, over the median: of ours and of the peer.
    pub(super) spread: [Option<f64>; 2],
    /// How far apart the cores were, us; None if the state of the machine was not the same for long enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cores_us: Option<f64>,
    /// Of a suite: its tests that ran out of time, ours and the peer's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timed_out: Option<[usize; 2]>,
}

impl Entry {
    /// There is at least our own figure.
    pub fn is_known(&self) -> bool {
        self.ours.is_some()
    }
}

/// All that are known.
pub fn measures() -> Vec<Measure> {
    let pair = |name: String, test, bytes, to_reach| Measure {
        name,
        program: Program::P2p,
        shape: Shape::Pair,
        who: Who::Main,
        of: OURS,
        test,
        bytes,
        than: Than::Best,
        to_reach,
        limit: limit_of(test, bytes),
        of_limit_to_reach: None,
    };
    let short = |bytes| size(bytes).replace(' ', "");
    let mut all = Vec::new();
    all.push(Measure { of_limit_to_reach: Some(1.8), ..pair("latency_8B".into(), "latency", 8, 0.90) });
    for bytes in [64, KIB, 4 * KIB, 64 * KIB, MIB, 4 * MIB] {
        all.push(pair(format!("latency_{}", short(bytes)), "latency", bytes, 0.95));
    }
    all.push(pair("rate_8B".into(), "rate", 8, 1.25));
    let own = Than::Figure(OURS, "rate", 64);
    all.push(Measure { than: own, ..pair("rate_128B_of_own_64B".into(), "rate", 128, 0.80) });
    for bytes in [4 * KIB, 64 * KIB, MIB, 4 * MIB, 64 * MIB] {
        let to_reach = if bytes > 4 * MIB { 1.0 } else { 1.05 };
        all.push(pair(format!("bandwidth_{}", short(bytes)), "bandwidth", bytes, to_reach));
    }
    for bytes in [64 * KIB, MIB, 4 * MIB] {
        let than = Than::Figure(MACHINE, "raw_bandwidth", bytes);
        all.push(Measure { than, ..pair(format!("efficiency_{}", short(bytes)), "bandwidth", bytes, 0.97) });
    }
    for (name, test) in [("put_8B", "put"), ("fetch_and_op_8B", "fetch_and_op")] {
        all.push(Measure { program: Program::Rma, ..pair(name.into(), test, 8, 1.0) });
    }
    for (name, test, bytes) in [
        ("barrier_4ranks", "barrier", 0),
        ("allreduce_8B_4ranks", "allreduce", 8),
        ("alltoall_64KiB_4ranks", "alltoall", 64 * KIB),
    ] {
        let (program, shape) = (Program::Coll, Shape::Hosts(4));
        all.push(Measure { program, shape, ..pair(name.into(), test, bytes, 1.0) });
    }
    for (name, program, test) in
        [("startup_8ranks", Program::Startup, "startup"), ("memory_8ranks", Program::Memory, "memory_pss")]
    {
        let (shape, than) = (Shape::Hosts(8), Than::Of(ON_UCX));
        all.push(Measure { program, shape, than, ..pair(name.into(), test, 0, 1.0) });
    }
    for bytes in [MIB, 4 * MIB] {
        let (who, of) = (Who::Model, "ntbring-gen3x8-d2");
        let than = Than::Figure("ntbring-gen3x8", "bandwidth", bytes);
        let name = format!("relayed_gen3x8_{}", short(bytes));
        all.push(Measure { who, of, than, limit: None, ..pair(name, "bandwidth", bytes, 0.95) });
    }
    all
}

/// The figures that these need: the machine's before what is compared with them.
pub fn jobs(measures: &[Measure]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for measure in measures {
        let mut machine = |test, bytes| {
            jobs::want(&mut jobs, Program::Limits, Shape::Machine, Who::Machine, test, bytes);
        };
        if let Some(limit) = measure.limit {
            machine(limit.test, limit.bytes);
        }
        if let Than::Figure(MACHINE, test, bytes) = measure.than {
            machine(test, bytes);
        }
        let Measure { program, shape, who, test, bytes, .. } = *measure;
        jobs::want(&mut jobs, program, shape, who, test, bytes);
        if let Than::Figure(whose, test, bytes) = measure.than {
            if whose != MACHINE {
                jobs::want(&mut jobs, program, shape, who, test, bytes);
            }
        }
    }
    jobs
}

/// Measures whose name contains `only`.
pub fn chosen(only: Option<&str>) -> Vec<Measure> {
    measures().into_iter().filter(|measure| only.is_none_or(|only| measure.name.contains(only))).collect()
}

/// The names of all.
pub fn names() -> Vec<String> {
    measures().into_iter().map(|measure| measure.name).collect()
}

/// Compares, with what there is. `peers` are the other MPIs.
pub fn evaluate(stored: &Stored, measures: &[Measure]) -> Vec<Entry> {
    measures.iter().map(|measure| alike(&stored.figures, &stored.states, measure, &stored.peers())).collect()
}

/// Compares what was measured in one state of the machine, if that is enough.
fn alike(all: &Figures, states: &States, measure: &Measure, peers: &[&str]) -> Entry {
    let Measure { test, bytes, .. } = *measure;
    let ranks = measure.shape.ranks();
    let of = |mpi| Wanted { mpi, test, ranks, bytes };
    let mut wanted = vec![of(measure.of)];
    match &measure.than {
        Than::Best => wanted.extend(peers.iter().map(|peer| of(peer))),
        Than::Of(mpis) => wanted.extend(mpis.iter().map(|mpi| of(mpi))),
        Than::Figure(mpi, test, bytes) => wanted.push(Wanted { mpi, test, ranks, bytes: *bytes }),
    }
    wanted.extend(measure.limit.iter().map(|limit| Wanted {
        mpi: MACHINE,
        test: limit.test,
        ranks: 2,
        bytes: limit.bytes,
    }));
    // Who has no figure at all is not waited for.
    wanted.retain(|one| all.values(one.test, one.ranks, one.bytes, one.mpi).is_some());
    match states.best(&wanted) {
        Some(state) => Entry { cores_us: Some(rounded(state.cores_us)), ..entry(&state.figures, measure, peers) },
        None => entry(all, measure, peers),
    }
}

/// Also known where nothing was measured.
fn unit_of(test: &str) -> &'static str {
    match test {
        "bandwidth" => "MB/s",
        "rate" => "msg/s",
        "startup" => "ms",
        "memory_pss" => "KiB",
        _ => "us",
    }
}

/// More digits than this were not measured.
pub(super) fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

fn entry(figures: &Figures, measure: &Measure, peers: &[&str]) -> Entry {
    let Measure { test, bytes, .. } = *measure;
    let ranks = measure.shape.ranks();
    let unit = unit_of(test);
    let smaller = smaller_is_better(unit);
    let ours = figures.median(test, ranks, bytes, measure.of);
    let best_of = |mpis: &[&'_ str]| {
        let medians = mpis.iter().filter_map(|mpi| Some((*mpi, figures.median(test, ranks, bytes, mpi)?)));
        let best = medians.reduce(|best, next| if (next.1 < best.1) == smaller { next } else { best });
        best.map(|(mpi, value)| (mpi.to_string(), value, figures.values(test, ranks, bytes, mpi)))
    };
    let peer = match measure.than {
        Than::Best => best_of(peers),
        Than::Of(mpis) => best_of(mpis),
        Than::Figure(whose, test, bytes) => {
            let values = figures.values(test, ranks, bytes, whose);
            let name = format!("{whose}: {test} {}", size(bytes));
            figures.median(test, ranks, bytes, whose).map(|value| (name, value, values))
        }
    };
    let limit = measure.limit.as_ref().and_then(|limit| limit_value(figures, limit));
    let over = |other: Option<f64>| Some(ours? / other?);
    let ratio = over(peer.as_ref().map(|(_, value, _)| *value));
    let of_limit = over(limit);
    let holds = |ratio: f64, to_reach: f64| if smaller { ratio <= to_reach } else { ratio >= to_reach };
    let reached = ratio.map(|ratio| holds(ratio, measure.to_reach));
    let limit_held = measure.of_limit_to_reach.map(|to_reach| of_limit.map(|ratio| holds(ratio, to_reach)));
    let reached = match limit_held {
        // Without the limit it is not known, unless the rest has failed anyway.
        Some(None) => reached.filter(|reached| !reached),
        Some(Some(held)) => reached.map(|reached| reached && held),
        None => reached,
    };
    let spread_of = |values: Option<&[f64]>| values.map(spread).filter(|spread| spread.is_finite()).map(rounded);
    Entry {
        name: measure.name.clone(),
        ours: ours.map(rounded),
        best_peer: peer.as_ref().map(|(_, value, _)| rounded(*value)),
        ratio: ratio.map(rounded),
        limit: limit.map(rounded),
        unit: unit.to_string(),
        better: if smaller { "lower" } else { "higher" },
        to_reach: measure.to_reach,
        of_limit: of_limit.map(rounded),
        of_limit_to_reach: measure.of_limit_to_reach,
        reached,
        spread: [
            spread_of(figures.values(test, ranks, bytes, measure.of)),
            peer.as_ref().and_then(|(_, _, values)| spread_of(*values)),
        ],
        peer: peer.map(|(name, _, _)| name),
        cores_us: None,
        timed_out: None,
    }
}

/// The heads of [`cells`].
pub const HEADER: [&str; 10] =
    ["measure", "ours", "best peer", "ratio", "to reach", "reached", "limit", "of limit", "spread", "cores"];

/// An entry as a row of a table.
pub fn cells(entry: &Entry) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_string());
    let value = |value: Option<f64>| or_dash(value.map(|value| format!("{} {}", number(value), entry.unit)));
    let sign = if entry.better == "lower" { "<=" } else { ">=" };
    let percent = |value: Option<f64>| or_dash(value.map(|value| format!("{:.0}%", 100.0 * value)));
    let timed_out = |whose: usize| match entry.timed_out {
        Some(tests) if tests[whose] > 0 => format!(", {} timed out", tests[whose]),
        _ => String::new(),
    };
    let peer = entry.peer.as_ref().map_or(String::new(), |peer| format!("{} ({peer})", timed_out(1)));
    let to_reach = match entry.of_limit_to_reach {
        Some(limit) => format!("{sign} {:.2}, {sign} {limit:.1} of limit", entry.to_reach),
        None => format!("{sign} {:.2}", entry.to_reach),
    };
    vec![
        entry.name.clone(),
        format!("{}{}", value(entry.ours), timed_out(0)),
        format!("{}{peer}", value(entry.best_peer)),
        or_dash(entry.ratio.map(factor)),
        to_reach,
        or_dash(entry.reached.map(|reached| if reached { "yes" } else { "NO" }.to_string())),
        // That of a suite is the ratio to be reached once more.
        value(entry.limit.filter(|_| entry.timed_out.is_none())),
        or_dash(entry.of_limit.map(factor)),
        format!("{} {}", percent(entry.spread[0]), percent(entry.spread[1])),
        or_dash(entry.cores_us.map(|us| format!("{} us", number(us)))),
    ]
}

/// For people.
pub fn table(entries: &[Entry]) -> String {
    let rows: Vec<Vec<String>> = entries.iter().map(cells).collect();
    let reached = entries.iter().filter(|entry| entry.reached == Some(true)).count();
    let known = entries.iter().filter(|entry| entry.reached.is_some()).count();
    format!("{}\n{reached} of {known} reached", ui::table(&HEADER, &rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(lines: &[(&str, &str, u64, f64, &str)]) -> Figures {
        let mut figures = Figures::default();
        for (mpi, test, bytes, value, unit) in lines {
            let line = format!("{{\"test\":\"{test}\",\"bytes\":{bytes},\"value\":{value},\"unit\":\"{unit}\"}}");
            figures.add(mpi, 2, &line);
        }
        figures
    }

    fn one(figures: &Figures, name: &str) -> Entry {
        let measures: Vec<Measure> = measures().into_iter().filter(|measure| measure.name == name).collect();
        alike(figures, &States::default(), &measures[0], &["a", "b"])
    }

    #[test]
    fn latencies_are_compared_with_the_smallest() {
        let lines = [
            (OURS, "latency", 8, 0.09, "us"),
            ("a", "latency", 8, 0.2, "us"),
            ("b", "latency", 8, 0.1, "us"),
            (MACHINE, "cacheline", 0, 0.06, "us"),
        ];
        let mut entry = one(&figures(&lines), "latency_8B");
        assert_eq!((entry.peer.as_deref(), entry.best_peer), (Some("b"), Some(0.1)));
        assert!((entry.ratio.unwrap() - 0.9).abs() < 1e-9 && (entry.of_limit.unwrap() - 1.5).abs() < 1e-9);
        assert_eq!(entry.better, "lower");
        entry = one(&figures(&lines[..3]), "latency_8B");
        assert_eq!((entry.limit, entry.reached), (None, None));
    }

    #[test]
    fn bandwidths_are_compared_with_the_largest() {
        let lines = [
            (OURS, "bandwidth", 4096, 21.0, "MB/s"),
            ("a", "bandwidth", 4096, 20.0, "MB/s"),
            ("b", "bandwidth", 4096, 10.0, "MB/s"),
        ];
        let entry = one(&figures(&lines), "bandwidth_4KiB");
        assert_eq!((entry.peer.as_deref(), entry.reached), (Some("a"), Some(true)));
        assert!((entry.ratio.unwrap() - 1.05).abs() < 1e-9);
        let text = serde_json::to_string(&entry).unwrap();
        assert!(text.starts_with(r#"{"name":"bandwidth_4KiB","ours":21.0,"best_peer":20.0,"peer":"a","ratio":1.05"#));
        assert!(text.contains(r#""limit":null"#), "{text}");
    }

    #[test]
    fn own_figures_and_the_machine_can_be_peers() {
        let lines = [
            (OURS, "rate", 64, 10e6, "msg/s"),
            (OURS, "rate", 128, 7e6, "msg/s"),
            (OURS, "bandwidth", MIB, 39.0, "MB/s"),
            (MACHINE, "raw_bandwidth", MIB, 40.0, "MB/s"),
        ];
        let figures = figures(&lines);
        assert_eq!(one(&figures, "rate_128B_of_own_64B").reached, Some(false));
        let entry = one(&figures, "efficiency_1MiB");
        assert_eq!((entry.reached, entry.peer.as_deref()), (Some(true), Some("machine: raw_bandwidth 1 MiB")));
    }

    #[test]
    fn what_is_missing_is_null() {
        let entry = one(&Figures::default(), "barrier_4ranks");
        assert_eq!((entry.ours, entry.ratio, entry.reached), (None, None, None));
        assert_eq!((entry.unit.as_str(), entry.better), ("us", "lower"));
        assert_eq!([0.1234567, 12_345_678.0].map(rounded), [0.12346, 12_346_000.0]);
        assert!(table(&[entry]).ends_with("0 of 0 reached"));
    }

    #[test]
    fn only_what_is_chosen_is_run() {
        let jobs = jobs(&chosen(Some("latency_8B")));
        assert_eq!(jobs.len(), 2);
        assert_eq!(jobs[0].tests[0].to_string(), "cacheline=0");
        assert_eq!(jobs[1].tests[0].to_string(), "latency=8");
        assert!(chosen(Some("nonsense")).is_empty());
        assert!(names().contains(&"rate_8B".to_string()));
    }
}
