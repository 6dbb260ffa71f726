//! The counters of a job as text.

use super::histograms;
use crate::columns::table;
use crate::reading::{Link, Rank};
use comfy_table::Table;
use ntbring_endpoint::{COUNTERS, LINK_COUNTERS};

/// Largest number of ranks that get a column each; with more ranks only the totals are shown.
const COLUMNS: usize = 12;

/// Age in milliseconds above which counters are reported as old: they were not updated on request.
const OLD_MS: u64 = 1000;

/// Returns a table with a column per rank and a row per counter that is not 0 everywhere, and a row per direction of
/// a link.
pub fn show(job: u32, ranks: &[Rank], links: &[Link]) -> String {
    let facts = &ranks[0].figures;
    let mut text = format!("job {job}: {} ranks on {} hosts\n", facts.size, facts.hosts);
    text += &old(ranks);
    text += &format!("\n{}\n", counters(ranks));
    if !links.is_empty() {
        text += &format!("\n{}\n", by_link(links));
    }
    for histogram in [histograms::sizes(ranks), histograms::times(ranks)].into_iter().flatten() {
        text += &format!("\n{histogram}\n");
    }
    text
}

/// Returns a line that names the ranks whose counters are old; nothing if there are none.
pub fn old(ranks: &[Rank]) -> String {
    let old: Vec<String> = ranks.iter().filter(|rank| rank.age_ms >= OLD_MS).map(age).collect();
    match old.is_empty() {
        true => String::new(),
        false => format!("not in MPI at present, so their counters are old: {}\n", old.join(", ")),
    }
}

fn name(rank: &Rank) -> String {
    match rank.figures.vci {
        0 => format!("rank {}", rank.figures.rank),
        vci => format!("rank {} vci {vci}", rank.figures.rank),
    }
}

fn age(rank: &Rank) -> String {
    format!("{} ({:.1} s)", name(rank), rank.age_ms as f64 / 1000.0)
}

fn counters(ranks: &[Rank]) -> Table {
    let wide = ranks.len() <= COLUMNS;
    let names: Vec<String> = match wide {
        true => ranks.iter().map(name).collect(),
        false => ["all", "least", "most"].map(String::from).into(),
    };
    let mut table = table([vec!["".into()], names].concat(), 1);
    let hosts = ranks.iter().map(|rank| format!("host {}", rank.figures.host));
    if wide {
        table.add_row([String::new()].into_iter().chain(hosts));
    }
    for (i, counter) in COUNTERS.iter().enumerate() {
        let values: Vec<u64> = ranks.iter().map(|rank| rank.figures.counters[i]).collect();
        let sum: u64 = values.iter().sum();
        if sum > 0 {
            let (least, most) = (values.iter().min(), values.iter().max());
            let shown = match wide {
                true => values,
                false => [sum].into_iter().chain(least.copied()).chain(most.copied()).collect(),
            };
            table.add_row([counter.name.to_string()].into_iter().chain(shown.iter().map(u64::to_string)));
        }
    }
    table
}

fn by_link(links: &[Link]) -> Table {
    let header = ["link", "state", "direction"].into_iter().chain(LINK_COUNTERS.iter().map(|counter| counter.name));
    let mut table = table(header.map(String::from).collect(), 3);
    for link in links {
        let direction = format!("{} to {}", link.from, link.to);
        let facts = [link.link.clone(), link.state.to_string(), direction];
        table.add_row(facts.into_iter().chain(link.counters.iter().map(u64::to_string)));
    }
    table
}
