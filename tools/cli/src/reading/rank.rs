//! Counters of one rank.

use ntbring_endpoint::Figures;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Counters of a rank, and their age.
#[derive(Clone, Serialize)]
pub struct Rank {
    /// Process id of the job's rank 0.
    pub job: u32,
    /// Age of the counters, milliseconds.
    pub age_ms: u64,
    /// The counters; those of the host's forwarder are current.
    #[serde(flatten)]
    pub figures: Figures,
    /// Time at which the rank published its counters.
    #[serde(skip)]
    pub published: Instant,
    /// Id of the process; None if it has ended.
    #[serde(skip)]
    pub pid: Option<u32>,
}

impl Rank {
    /// Creates the counters of a rank that were read now and have this age.
    pub fn new(job: u32, pid: Option<u32>, figures: Figures, age: Duration) -> Rank {
        let now = Instant::now();
        Rank { job, age_ms: age.as_millis() as u64, figures, published: now.checked_sub(age).unwrap_or(now), pid }
    }
}
