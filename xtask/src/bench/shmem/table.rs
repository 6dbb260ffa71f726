//! The comparison: a line for each row and each kind of peer, in the form of `bench compare`.

use super::libraries::{OURS, PEERS, WINDOWS};
use super::rows::{lower_is_better, Group, Placement, Program};
use crate::bench::compare::{rounded, Entry};
use crate::bench::figures::{spread, Figures};

/// Far puts that complete together should be this much faster than those that are completed one by one.
const OVER_ROUND_TRIPS: f64 = 10.0;
/// The most that the library should add to a near put of 8 bytes, in ns.
const PUT_NS: f64 = 30.0;

/// A figure: whose, its test, its number of PEs.
#[derive(Clone, Copy)]
struct Of<'a>(&'a str, &'a str, usize);

impl Of<'_> {
    fn values<'f>(&self, figures: &'f Figures) -> Option<&'f [f64]> {
        figures.values(self.1, self.2, 0, self.0)
    }

    fn median(&self, figures: &Figures) -> Option<f64> {
        figures.median(self.1, self.2, 0, self.0)
    }
}

/// Compares a figure with another, or with a value that is known.
fn entry(figures: &Figures, name: &str, ours: Of, peer: Option<Of>, known: Option<f64>, to_reach: f64) -> Entry {
    let (unit, scale) = match figures.unit(ours.1) {
        "MB/s" => ("GB/s", 1e-3),
        unit => (unit, 1.0),
    };
    let lower = lower_is_better(unit);
    let our_value = ours.median(figures).map(|value| value * scale);
    let peer_value = peer.and_then(|peer| peer.median(figures)).or(known).map(|value| value * scale);
    let ratio = our_value.zip(peer_value).map(|(ours, peer)| ours / peer);
    let values = [ours.values(figures), peer.and_then(|peer| peer.values(figures))];
    let spread_of = |values: &[f64]| Some(spread(values)).filter(|spread| spread.is_finite()).map(rounded);
    let peer_name = match peer {
        Some(peer) if peer.0 == ours.0 => peer.1.to_string(),
        Some(peer) => peer.0.to_string(),
        None => "goal".to_string(),
    };
    Entry {
        name: name.to_string(),
        shape: None,
        ours: our_value.map(rounded),
        best_peer: peer_value.map(rounded),
        peer: peer_value.map(|_| peer_name),
        ratio: ratio.map(rounded),
        limit: None,
        unit: unit.to_string(),
        better: if lower { "lower" } else { "higher" },
        to_reach: Some(to_reach),
        of_limit: None,
        of_limit_to_reach: None,
        reached: ratio.map(|ratio| if lower { ratio <= to_reach } else { ratio >= to_reach }),
        runs: values.map(|values| values.map(<[f64]>::len)),
        spread: values.map(|values| values.and_then(spread_of)),
        cores_us: None,
        timed_out: None,
    }
}

/// Returns the one of these libraries with the best median.
fn best<'a>(figures: &Figures, test: &'a str, pes: usize, names: &[&'a str]) -> Option<Of<'a>> {
    let lower = lower_is_better(figures.unit(test));
    let known = names.iter().map(|name| Of(name, test, pes)).filter(|of| of.values(figures).is_some());
    known.reduce(|best, next| {
        let (this, that) = (best.median(figures), next.median(figures));
        if (that < this) == lower {
            next
        } else {
            best
        }
    })
}

/// Returns the lines that compare with these libraries.
fn against(figures: &Figures, groups: &[Group], names: &[&str]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for group in groups {
        let pes = group.placement.pes();
        for row in &group.rows {
            let test = group.shown(row);
            let peer = best(figures, &test, pes, names);
            if peer.is_some() {
                entries.push(entry(figures, &test, Of(OURS, &test, pes), peer, None, 1.0));
            }
        }
    }
    entries
}

/// Returns the lines that compare with nothing but goals, and with other rows of the same library.
fn own(figures: &Figures, groups: &[Group]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for group in groups.iter().filter(|group| group.program == Program::Pair) {
        let pes = group.placement.pes();
        let has = |row: &str| group.rows.contains(&row);
        if group.placement == Placement::Hosts(2) && has("put_8B") {
            let test = group.shown("put_8B");
            let name = format!("{test}_at_most_{PUT_NS}ns");
            entries.push(entry(figures, &name, Of(OURS, &test, pes), None, Some(PUT_NS), 1.0));
        }
        for row in ["put_rate", "put_nbi_rate"] {
            if group.placement.is_far() && has(row) && has("put_quiet_rate") {
                let [test, single] = [row, "put_quiet_rate"].map(|row| group.shown(row));
                let (ours, peer) = (Of(OURS, &test, pes), Of(OURS, &single, pes));
                entries.push(entry(
                    figures,
                    &format!("{test}_of_round_trips"),
                    ours,
                    Some(peer),
                    None,
                    OVER_ROUND_TRIPS,
                ));
            }
        }
    }
    entries
}

/// A table's title and lines.
pub type Section = (&'static str, Vec<Entry>);

/// Returns all tables that have lines.
pub fn sections(figures: &Figures, groups: &[Group]) -> Vec<Section> {
    let all = [
        ("against Open MPI's OpenSHMEM", against(figures, groups, &PEERS)),
        ("against ntbring's own MPI windows and collectives", against(figures, groups, &[WINDOWS])),
        ("against goals", own(figures, groups)),
    ];
    all.into_iter().filter(|(_, entries)| !entries.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::shmem::rows::groups;

    #[test]
    fn latencies_and_rates_are_compared_in_their_directions() {
        let mut figures = Figures::default();
        figures.push(OURS, 2, "near_put_8B", 10.0, "ns");
        figures.push(PEERS[0], 2, "near_put_8B", 40.0, "ns");
        figures.push(PEERS[1], 2, "near_put_8B", 20.0, "ns");
        figures.push(OURS, 2, "far_apart_put_rate", 2.0, "M/s");
        figures.push(OURS, 2, "far_apart_put_quiet_rate", 0.5, "M/s");
        figures.push(WINDOWS, 2, "far_apart_put_rate", 1.0, "M/s");
        let sections = sections(&figures, &groups(None));
        assert_eq!(sections.len(), 3);
        let first = &sections[0].1[0];
        assert_eq!((first.ratio, first.peer.as_deref(), first.reached), (Some(0.5), Some("oshmem-posix"), Some(true)));
        assert_eq!((sections[1].1[0].ratio, sections[1].1[0].reached), (Some(2.0), Some(true)));
        let find = |name: &str| sections[2].1.iter().find(|entry| entry.name == name).unwrap();
        let single = find("far_apart_put_rate_of_round_trips");
        assert_eq!((single.ratio, single.to_reach, single.reached), (Some(4.0), Some(10.0), Some(false)));
        assert_eq!(find("near_put_8B_at_most_30ns").reached, Some(true));
    }
}
