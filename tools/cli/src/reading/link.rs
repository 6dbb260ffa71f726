//! Counters of the links of a job, summed over all ranks.

use super::rank::Rank;
use ntbring_endpoint::LINK_COUNTERS;
use ntbring_ntb::Side;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// One direction of a link.
#[derive(Serialize)]
pub struct Link {
    pub job: u32,
    /// Name of the link, as `ntbring link` takes it.
    pub link: String,
    pub from: u64,
    pub to: u64,
    pub state: &'static str,
    /// Counters of the ranks and the forwarder of the sending host.
    #[serde(flatten, serialize_with = "counters")]
    pub counters: Vec<u64>,
}

fn counters<S: Serializer>(values: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(LINK_COUNTERS.iter().map(|counter| counter.name).zip(values))
}

/// Sums the counters of all links of a job. Links whose names are in `down` are reported as down.
pub fn sum(job: u32, ranks: &[Rank], down: &[String]) -> Vec<Link> {
    // Sorted by the host to whose right the link is, then by direction.
    let mut links = BTreeMap::<(u64, bool), Link>::new();
    for figures in ranks.iter().map(|rank| &rank.figures) {
        for of in &figures.links {
            let (from, to, leftward) = (figures.host, of.to, of.side == Side::Left);
            let ends = if leftward { (to, from) } else { (from, to) };
            let link = links.entry((ends.0, leftward)).or_insert_with(|| {
                let link = format!("{}-{}", ends.0, ends.1);
                let state = if down.contains(&link) { "down" } else { "up" };
                Link { job, link, from, to, state, counters: vec![0; LINK_COUNTERS.len()] }
            });
            link.counters.iter_mut().zip(&of.counters).for_each(|(sum, more)| *sum += more);
        }
    }
    links.into_values().collect()
}
