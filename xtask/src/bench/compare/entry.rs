//! The result of a measure, ready to be shown.

use serde::Serialize;

/// The result of a measure.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Entry {
    pub name: String,
    /// Hosts and ranks, of a collective.
    #[serde(skip)]
    pub shape: Option<String>,
    pub ours: Option<f64>,
    pub best_peer: Option<f64>,
    pub peer: Option<String>,
    pub ratio: Option<f64>,
    pub limit: Option<f64>,
    pub unit: String,
    /// "lower" or "higher": the direction in which value and ratio are better.
    pub better: &'static str,
    /// The ratio to be reached; None if the measure is only reported.
    pub to_reach: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_limit: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_limit_to_reach: Option<f64>,
    pub reached: Option<bool>,
    /// Number of runs that the medians are taken of: of ntbring and of the peer.
    pub runs: [Option<usize>; 2],
    /// Largest less smallest value of these runs, over the median: of ntbring and of the peer.
    pub spread: [Option<f64>; 2],
    /// Half the round trip of a cache line between the first two cores, in us; None if the machine was not in the same
    /// state for long enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores_us: Option<f64>,
    /// Number of tests of a suite that ran out of time: ntbring's and the peer's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<[usize; 2]>,
}

impl Entry {
    /// Returns true if there is at least ntbring's own figure.
    pub fn is_known(&self) -> bool {
        self.ours.is_some()
    }
}

/// Rounds a value to the digits that the measurement supports.
pub fn rounded(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}
