//! Data that both views show: what a job did between two successive readings of its stats pages.

use super::change::Change;
use super::detail::{sum, Detail};
use super::job::Job;
use super::links::{self, LinkLine};
use super::state::State;
use crate::reading::Rank;
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::Instant;

/// All stats pages of a job, read at one time.
pub struct Reading {
    /// Time of the reading.
    pub at: Instant,
    /// Facts about the job.
    pub job: Job,
    /// Counters by rank and VCI.
    pub ranks: Vec<Rank>,
    /// Ids of processes that a signal or a debugger has stopped.
    pub stopped: BTreeSet<u32>,
    /// Names of the links that are down.
    pub down: Vec<String>,
}

/// A job at one time, with rates since the reading before.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Facts about the job.
    pub job: Job,
    /// True if the job has ended; everything else is then as it was last.
    pub ended: bool,
    /// Number of hosts in the ring; 0 until a rank has joined.
    pub hosts: u64,
    /// Number of ranks in the job; 0 until a rank has joined.
    pub size: u64,
    /// Rate that counts as full utilisation of one direction of a link.
    pub limit: Limit,
    /// Links, by the host to whose right they are.
    pub links: Vec<LinkLine>,
    /// Ranks that have joined, including those that have ended since.
    pub ranks: Vec<RankLine>,
    /// Details of the same ranks.
    #[serde(skip)]
    pub details: Vec<Detail>,
}

/// A rate that counts as full utilisation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// Bytes per second; None if nothing is known yet.
    pub bytes_per_s: Option<f64>,
    /// Source of the rate.
    pub origin: Origin,
}

/// A source of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The bandwidth of the job's link model.
    LinkModel,
    /// The largest rate seen in any direction of any link.
    LargestSeen,
}

/// A rank, on one line.
#[derive(Clone, Debug, Serialize)]
pub struct RankLine {
    /// The rank.
    pub rank: u64,
    /// Its host.
    pub host: u64,
    /// Its process; None if it has ended.
    pub pid: Option<u32>,
    /// Its state.
    pub state: State,
    /// The state as text.
    pub doing: String,
    /// Messages sent per second; None if the rank has not updated its counters since the reading before.
    pub msgs_per_s: Option<f64>,
    /// Bytes sent per second.
    pub out_per_s: Option<f64>,
    /// Bytes received per second.
    pub in_per_s: Option<f64>,
    /// Age of the rank's counters, seconds.
    pub age_s: f64,
}

/// Counters of sent messages and bytes; their sums are shown.
const MSGS_OUT: &[&str] = &["msgs_local", "msgs_direct", "msgs_relayed"];
const BYTES_OUT: &[&str] = &["bytes_local", "bytes_direct", "bytes_relayed"];

/// Turns successive readings of one job into samples.
#[derive(Default)]
pub struct Sampler {
    before: Option<Reading>,
    /// Largest rate seen in a direction of a link, bytes per second.
    largest: f64,
}

impl Sampler {
    /// Returns the sample of a reading. Rates need an earlier reading.
    pub fn step(&mut self, mut reading: Reading) -> Sample {
        self.keep_ended(&mut reading.ranks);
        let before = self.before.take();
        let elapsed = before.as_ref().map(|before| (reading.at - before.at).as_secs_f64());
        let old = |rank: &Rank| {
            let same = |old: &&Rank| key(old) == key(rank);
            before.as_ref().and_then(|before| before.ranks.iter().find(same))
        };
        let changes: Vec<Change> = reading.ranks.iter().map(|rank| Change::new(rank, old(rank), elapsed)).collect();
        let facts = reading.ranks.first().map(|rank| &rank.figures);
        let (hosts, size) = facts.map_or((0, 0), |figures| (figures.hosts, figures.size));
        let mut links = links::of(hosts, &changes, &reading.down);
        let seen = links.iter().flat_map(|link| &link.directions).filter_map(|direction| direction.bytes_per_s);
        self.largest = seen.fold(self.largest, f64::max);
        let limit = self.limit(&reading.job);
        links.iter_mut().for_each(|link| link.set_utilisation(limit.bytes_per_s));
        // The VCIs of a rank follow each other.
        let by_rank = || changes.chunk_by(|a, b| a.now.figures.rank == b.now.figures.rank);
        let ranks = by_rank().map(|vcis| line(vcis, &reading)).collect();
        let details = by_rank().map(Detail::of).collect();
        let sample = Sample { job: reading.job.clone(), ended: false, hosts, size, limit, links, ranks, details };
        self.before = Some(reading);
        sample
    }

    /// Forgets the reading before, so that the next sample has no rates.
    pub fn forget(&mut self) {
        self.before = None;
    }

    /// Adds the ranks of the reading before whose pages are gone.
    fn keep_ended(&self, ranks: &mut Vec<Rank>) {
        let present: BTreeSet<_> = ranks.iter().map(key).collect();
        let before = self.before.iter().flat_map(|before| &before.ranks);
        let gone = before.filter(|rank| !present.contains(&key(rank)));
        ranks.extend(gone.map(|rank| Rank { pid: None, ..rank.clone() }));
        ranks.sort_by_key(key);
    }

    fn limit(&self, job: &Job) -> Limit {
        match job.bandwidth {
            Some(bandwidth) => Limit { bytes_per_s: Some(bandwidth), origin: Origin::LinkModel },
            None => {
                let largest = Some(self.largest).filter(|rate| *rate > 0.0);
                Limit { bytes_per_s: largest, origin: Origin::LargestSeen }
            }
        }
    }
}

fn key(rank: &Rank) -> (u64, u64) {
    (rank.figures.rank, rank.figures.vci)
}

/// Returns the line of a rank with these VCIs.
fn line(vcis: &[Change], reading: &Reading) -> RankLine {
    let first = vcis[0].now;
    let rate = |names: &[&str]| vcis.iter().flat_map(|vci| names.iter().map(|name| vci.rate(name))).fold(None, sum);
    let age = reading.at.saturating_duration_since(first.published);
    let stopped = first.pid.is_some_and(|pid| reading.stopped.contains(&pid));
    let state = State::of(first, age, stopped);
    RankLine {
        rank: first.figures.rank,
        host: first.figures.host,
        pid: first.pid,
        doing: state.text(first.figures.size),
        state,
        msgs_per_s: rate(MSGS_OUT),
        out_per_s: rate(BYTES_OUT),
        in_per_s: rate(&["bytes_received"]),
        age_s: age.as_secs_f64(),
    }
}

impl Sample {
    /// Returns the sample of a job that has ended since: nothing moves any more.
    pub fn end(mut self) -> Sample {
        self.ended = true;
        for rank in &mut self.ranks {
            rank.state = State::ended();
            rank.doing = rank.state.text(self.size);
            rank.pid = None;
        }
        self
    }

    /// Returns the details of a rank.
    pub fn detail(&self, rank: u64) -> Option<&Detail> {
        self.details.iter().find(|detail| detail.rank == rank)
    }
}

#[cfg(test)]
mod tests;
