//! Times in descriptions of faults, such as `50us`.

use crate::timing::model::scaled;
use std::time::Duration;

/// Upper bound of the times in a description.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Parses a time such as `50us` or `1.5s`; at most one day.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let ns = scaled(text, &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)], "50us, 200ms or 1.5s")?;
    if ns > LONGEST.as_nanos() as f64 {
        return Err(format!("{text:?} is more than a day"));
    }
    Ok(Duration::from_nanos(ns as u64))
}

/// Formats a time so that [`time`] parses it without loss.
pub(super) fn show(time: Duration) -> String {
    let ns = time.as_nanos();
    let unit = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)]
        .into_iter()
        .find(|(_, scale)| ns.is_multiple_of(*scale));
    let (unit, scale) = unit.unwrap_or(("ns", 1));
    format!("{}{unit}", ns / scale)
}
