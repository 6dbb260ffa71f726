//! The names of how far links can be trusted.

use ntbring_queue::Reliability::{self, *};

/// With their names, by their codes.
const NAMED: [(&str, Reliability); 3] = [("off", Off), ("detect", Detect), ("retry", Retry)];

/// The one of that name.
pub(super) fn parse(text: &str) -> Result<Reliability, String> {
    let found = NAMED.iter().find(|(name, _)| *name == text);
    found.map(|(_, reliability)| *reliability).ok_or_else(|| "unknown".into())
}

/// A number for each; 0 for off.
pub fn code(reliability: Reliability) -> u8 {
    NAMED.iter().position(|(_, r)| *r == reliability).unwrap_or(0) as u8
}

/// The name of the one with that number.
pub fn name_of(code: u8) -> String {
    NAMED.get(usize::from(code)).map_or_else(|| format!("unknown ({code})"), |(name, _)| name.to_string())
}
