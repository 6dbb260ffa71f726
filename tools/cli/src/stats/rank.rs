//! Counters of one rank.

use ntbring_endpoint::Figures;
use serde::Serialize;

/// Counters of a rank, and their age.
#[derive(Serialize)]
pub(super) struct Rank {
    pub job: u32,
    pub age_ms: u64,
    #[serde(flatten)]
    pub figures: Figures,
}
