//! Reliability levels, with their names and handshake codes.

use crate::checked::CHECK;
use std::fmt;

/// Degree to which lanes trust their links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reliability {
    /// Full trust: links detect and correct errors themselves, as PCIe does.
    #[default]
    Off,
    /// Lost and damaged entries are reported as errors.
    Detect,
    /// Lost and damaged entries are retransmitted.
    Retry,
}

use Reliability::{Detect, Off, Retry};

/// All levels with their names. The index is the code in the handshake.
const NAMED: [(&str, Reliability); 3] = [("off", Off), ("detect", Detect), ("retry", Retry)];

impl Reliability {
    /// Bytes at the end of every entry that do not belong to the caller (the checksum).
    pub fn trailer(self) -> usize {
        if self == Reliability::Off {
            0
        } else {
            CHECK
        }
    }

    /// Returns the level with this name.
    pub fn parse(text: &str) -> Result<Reliability, String> {
        let found = NAMED.iter().find(|(name, _)| *name == text);
        found.map(|(_, reliability)| *reliability).ok_or_else(|| "unknown".into())
    }

    /// Returns true if packets that were damaged or lost are sent again (`retry`).
    pub fn retransmits(self) -> bool {
        self == Retry
    }

    /// Code of the level in the handshake; 0 for `off`.
    pub fn code(self) -> u8 {
        NAMED.iter().position(|(_, r)| *r == self).unwrap_or(0) as u8
    }

    /// Returns the name of the level with this code.
    pub fn name_of(code: u8) -> String {
        NAMED.get(usize::from(code)).map_or_else(|| format!("unknown ({code})"), |(name, _)| name.to_string())
    }
}

impl fmt::Display for Reliability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAMED[usize::from(self.code())].0)
    }
}
