//! Errors of a measurement, and the times that bound it.

use std::time::Duration;

/// Time for which a side writes to measure the bandwidth.
pub(crate) const STREAM: Duration = Duration::from_millis(100);
/// Longest time until the neighbour answers.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);

/// Reasons for which a link cannot be measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeasureError {
    /// The link is down.
    #[error("the link is down: {0}")]
    Down(String),
    /// Another measurement of the link is running.
    #[error("the link is being measured already")]
    Busy,
    /// The neighbour's agent does not answer.
    #[error("the neighbour's ntbringd does not answer within {} s", ANSWER.as_secs())]
    Silent,
}
