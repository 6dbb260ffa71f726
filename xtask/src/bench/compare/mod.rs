//! `bench compare`: ntbring against the best of the other MPIs, measure by measure.

mod collectives;
mod entry;
mod markdown;
mod measures;
mod queue_management;
mod shown;

use crate::bench::figures::{size, smaller_is_better, spread, Figures, MACHINE};
use crate::bench::jobs::Job;
use crate::bench::states::{self, States, Wanted};
use crate::bench::stored::Stored;
use crate::bench::tables::limit_value;
pub use entry::{rounded, Entry};
pub use markdown::markdown;
use measures::{measures, Measure, Than};
pub use shown::{cells, summary, table, HEADER};

/// Returns true if a measure of this name is selected.
fn is_chosen(name: &str, only: Option<&str>) -> bool {
    only.is_none_or(|only| name.contains(only))
}

/// Returns the measures whose name contains `only`.
fn chosen(only: Option<&str>) -> Vec<Measure> {
    measures().into_iter().filter(|measure| is_chosen(&measure.name, only)).collect()
}

/// Returns the names of all measures.
pub fn names() -> Vec<String> {
    measures().into_iter().map(|measure| measure.name).chain([queue_management::NAME.to_string()]).collect()
}

/// Returns the jobs that are needed, on a machine with so many cores, for measures whose name contains `only`.
pub fn jobs(only: Option<&str>, cores: usize) -> Vec<Job> {
    let possible: Vec<Measure> = chosen(only).into_iter().filter(|measure| measure.is_possible(cores)).collect();
    let mut jobs = measures::jobs(&possible);
    jobs.extend(is_chosen(queue_management::NAME, only).then(queue_management::job));
    jobs
}

/// Compares the figures that exist of measures whose name contains `only`.
pub fn evaluate(stored: &Stored, only: Option<&str>) -> Vec<Entry> {
    let (peers, enough) = (stored.peers(), states::enough(stored.rounds));
    let one = |measure: &Measure| alike(&stored.figures, &stored.states, enough, measure, &peers);
    // What was measured without binding depends on the machine.
    let was_possible =
        |measure: &Measure| measure.bound || !stored.figures.sizes(&measure.figure(), measure.shape.ranks()).is_empty();
    let mut entries: Vec<Entry> = chosen(only).iter().filter(|measure| was_possible(measure)).map(one).collect();
    entries.extend(is_chosen(queue_management::NAME, only).then(|| queue_management::entry(stored)));
    entries
}

/// Compares the figures that were measured in one state of the machine, or all figures if these are too few. `peers`
/// are the other MPIs.
fn alike(all: &Figures, states: &States, enough: usize, measure: &Measure, peers: &[&str]) -> Entry {
    let (test, bytes, ranks) = (&measure.figure(), measure.bytes, measure.shape.ranks());
    let of = |mpi| Wanted { mpi, test, ranks, bytes };
    let mut wanted = vec![of(measure.of)];
    match &measure.than {
        Than::Best => wanted.extend(peers.iter().map(|peer| of(peer))),
        Than::Figure(mpi, test, bytes) => wanted.push(Wanted { mpi, test, ranks, bytes: *bytes }),
        Than::Known(..) => {}
    }
    wanted.extend(measure.limit.iter().map(|limit| Wanted {
        mpi: MACHINE,
        test: limit.test,
        ranks: 2,
        bytes: limit.bytes,
    }));
    // Contestants with few figures, or none, do not count, since no state would have enough of them.
    wanted.retain(|one| all.values(one.test, one.ranks, one.bytes, one.mpi).is_some_and(|all| all.len() >= enough));
    match states.best(&wanted, enough) {
        Some(state) => Entry { cores_us: Some(rounded(state.cores_us)), ..entry(&state.figures, measure, peers) },
        None => entry(all, measure, peers),
    }
}

/// Returns the unit of a test, also of one that was not measured.
fn unit_of(test: &str) -> &'static str {
    match test {
        "bandwidth" | "bibw" => "MB/s",
        "rate" => "msg/s",
        "startup" | "halo" | "cg" | "sort" | "fft" => "ms",
        "memory_pss" => "KiB",
        _ => "us",
    }
}

fn entry(figures: &Figures, measure: &Measure, peers: &[&str]) -> Entry {
    let (test, bytes, ranks) = (&measure.figure(), measure.bytes, measure.shape.ranks());
    let unit = unit_of(measure.test);
    let smaller = smaller_is_better(unit);
    let ours = figures.median(test, ranks, bytes, measure.of);
    let best = || {
        let medians = peers.iter().filter_map(|mpi| Some((*mpi, figures.median(test, ranks, bytes, mpi)?)));
        let best = medians.reduce(|best, next| if (next.1 < best.1) == smaller { next } else { best });
        best.map(|(mpi, value)| (mpi.to_string(), value, figures.values(test, ranks, bytes, mpi)))
    };
    let peer = match measure.than {
        Than::Best => best(),
        Than::Figure(whose, test, bytes) => {
            let values = figures.values(test, ranks, bytes, whose);
            let name = format!("{whose}: {test} {}", size(bytes));
            figures.median(test, ranks, bytes, whose).map(|value| (name, value, values))
        }
        Than::Known(whose, value) => Some((whose.to_string(), value, None)),
    };
    let limit = measure.limit.as_ref().and_then(|limit| limit_value(figures, limit));
    let over = |other: Option<f64>| Some(ours? / other?);
    let ratio = over(peer.as_ref().map(|(_, value, _)| *value));
    let of_limit = over(limit);
    let holds = |ratio: f64, to_reach: f64| if smaller { ratio <= to_reach } else { ratio >= to_reach };
    let reached = ratio.map(|ratio| holds(ratio, measure.to_reach));
    let limit_held = measure.of_limit_to_reach.map(|to_reach| of_limit.map(|ratio| holds(ratio, to_reach)));
    let reached = match limit_held {
        // Without a measured limit the result is unknown, unless the other condition has failed already.
        Some(None) => reached.filter(|reached| !reached),
        Some(Some(held)) => reached.map(|reached| reached && held),
        None => reached,
    };
    let values = [figures.values(test, ranks, bytes, measure.of), peer.as_ref().and_then(|(_, _, values)| *values)];
    let spread_of = |values: Option<&[f64]>| values.map(spread).filter(|spread| spread.is_finite()).map(rounded);
    Entry {
        name: measure.name.clone(),
        shape: collectives::shape(measure),
        ours: ours.map(rounded),
        best_peer: peer.as_ref().map(|(_, value, _)| rounded(*value)),
        ratio: ratio.map(rounded),
        limit: limit.map(rounded),
        unit: unit.to_string(),
        better: if smaller { "lower" } else { "higher" },
        to_reach: Some(measure.to_reach),
        of_limit: of_limit.map(rounded),
        of_limit_to_reach: measure.of_limit_to_reach,
        reached,
        runs: values.map(|values| values.map(<[f64]>::len)),
        spread: values.map(spread_of),
        peer: peer.map(|(name, _, _)| name),
        cores_us: None,
        timed_out: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contestants::OURS;

    const MIB: u64 = 1 << 20;

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
        alike(figures, &States::default(), 1, &measures[0], &["a", "b"])
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
        assert_eq!(entry.runs, [Some(1), Some(1)]);
    }

    #[test]
    fn a_link_model_is_a_peer_that_was_not_measured() {
        let figures = figures(&[("ntbring-gen3x8", "bandwidth", MIB, 5900.0, "MB/s")]);
        let entry = one(&figures, "efficiency_gen3x8_1MiB");
        assert_eq!((entry.best_peer, entry.reached, entry.runs), (Some(6000.0), Some(true), [Some(1), None]));
        assert_eq!(cells(&entry)[2], "6000 MB/s (link model gen3x8)");
        assert_eq!(one(&Figures::default(), "efficiency_gen3x8_1MiB").reached, None);
    }

    #[test]
    fn enough_runs_in_one_state_are_compared_alone() {
        let mut states = States::default();
        let mut all = Figures::default();
        for (cores_us, value, runs) in [(0.1, 20.0, 2), (0.5, 30.0, 3)] {
            let line = format!("{{\"test\":\"put\",\"bytes\":8,\"value\":{value},\"unit\":\"us\"}}\n").repeat(runs);
            let state = states.number(cores_us);
            for mpi in [OURS, "a"] {
                all.add(mpi, 2, &line);
                states.figures_mut(state).add(mpi, 2, &line);
            }
        }
        let measure = &chosen(Some("put_8B"))[0];
        let entry = |enough| alike(&all, &states, enough, measure, &["a"]);
        assert_eq!((entry(3).cores_us, entry(3).runs), (Some(0.5), [Some(3), Some(3)]));
        assert_eq!((entry(4).cores_us, entry(4).runs), (None, [Some(5), Some(5)]));
        let cells = cells(&entry(3));
        assert_eq!(HEADER.iter().zip(&cells).find(|(head, _)| **head == "runs").unwrap().1, "3/3");
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
        let jobs = jobs(Some("latency_8B"), 2);
        assert_eq!(jobs.len(), 2);
        assert_eq!(jobs[0].tests[0].to_string(), "cacheline=0");
        assert_eq!(jobs[1].tests[0].to_string(), "latency=8");
        assert!(chosen(Some("nonsense")).is_empty());
        assert!(names().contains(&"rate_8B".to_string()));
        let jobs = super::jobs(Some("queue_management"), 2);
        assert_eq!((jobs.len(), jobs[0].tests.len()), (1, 1));
        assert_eq!(super::jobs(Some("barrier_4ranks"), 2).len(), 1, "on two cores four ranks are never bound");
        assert_eq!(super::jobs(Some("barrier_4ranks"), 4).len(), 2);
    }
}
