//! The control protocol of a measurement.

use crate::choose::Figures;
use crate::error::TuneError;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write};

/// Control messages between the measuring processes and their parent, one per line.
#[derive(Serialize, Deserialize)]
pub(super) enum Line {
    /// Addresses of the endpoints of a rank as bytes; from the parent, those of both ranks.
    Addresses(Vec<Vec<Vec<u8>>>),
    /// Number of completed rounds, and of all rounds.
    Round(usize, usize),
    /// Results of the measurement.
    Figures(Figures),
}

impl Line {
    /// Writes the message as one line.
    pub fn write(&self, mut to: impl Write) -> Result<(), TuneError> {
        let told = serde_json::to_string(self).map_err(std::io::Error::from).and_then(|text| {
            writeln!(to, "{text}")?;
            to.flush()
        });
        told.map_err(|cause| TuneError::System { what: "cannot write to the other processes", cause })
    }

    /// Reads a message of measuring process `rank`.
    pub fn read(rank: usize, from: &mut impl BufRead) -> Result<Line, TuneError> {
        let mut text = String::new();
        let read = from.read_line(&mut text);
        read.map_err(|cause| TuneError::System { what: "cannot read from the other processes", cause })?;
        if text.is_empty() {
            return Err(TuneError::Rank { rank, problem: "ended prematurely: see its messages above".into() });
        }
        serde_json::from_str(&text)
            .map_err(|error| TuneError::Rank { rank, problem: format!("sent {:?}: {error}", text.trim_end()) })
    }
}
