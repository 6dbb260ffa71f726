//! Measures, between two processes of this machine, the ways that a message can travel, and finds
//! the sizes where one should end and the next begin: what `ntbring tune` does.
//!
//! | module | holds |
//! |---|---|
//! | `plan` | what is measured |
//! | `station` | one rank's end of one ring, with its buffers: sends and receives one way |
//! | `rank` | a measuring process: rank 0 tells rank 1 what comes next, and keeps the time |
//! | [`choose`] | from times to thresholds |
//!
//! The messages go through [`crate::endpoint`] as those of the netmod do, with headers of the same
//! size; what MPICH does above it (matching, requests) costs every way about the same and is not in.

pub mod choose;
mod plan;
mod rank;
mod station;

pub use plan::Method;
pub use rank::measure;

use choose::Figures;
use ntbring_endpoint::EndpointError;
use ntbring_ring::join::JoinError;
use ntbring_settings::SettingError;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// A setting.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The two processes did not come together.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// Messages between them failed.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// Something of the system.
    #[error("{what}: {cause}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What it said.
        cause: std::io::Error,
    },
    /// The machine.
    #[error("two cores are needed to measure messages between two ranks; this process may use {0}")]
    Cores(usize),
    /// A message that was changed on its way.
    #[error("a message of {bytes} bytes arrived with other bytes than were sent ({way})")]
    Wrong {
        /// Its payload.
        bytes: usize,
        /// Its way.
        way: Method,
    },
    /// One of the two processes said something else than it should.
    #[error("measuring rank {rank} {problem}")]
    Rank {
        /// Which.
        rank: usize,
        /// What is wrong.
        problem: String,
    },
}

/// What the measuring processes and the one that has started them say to each other, a line each.
#[derive(Serialize, Deserialize)]
enum Line {
    /// The cards of a rank's ends, as bytes; of both ranks if it comes from above.
    Cards(Vec<Vec<Vec<u8>>>),
    /// So many of so many rounds are done.
    Round(usize, usize),
    /// What was measured.
    Figures(Figures),
}

impl Line {
    fn write(&self, mut to: impl Write) -> Result<(), TuneError> {
        let told = serde_json::to_string(self).map_err(std::io::Error::from).and_then(|text| {
            writeln!(to, "{text}")?;
            to.flush()
        });
        told.map_err(|cause| TuneError::System { what: "cannot tell the other processes", cause })
    }

    fn read(rank: usize, from: &mut impl BufRead) -> Result<Line, TuneError> {
        let mut text = String::new();
        let read = from.read_line(&mut text);
        read.map_err(|cause| TuneError::System { what: "cannot hear the other processes", cause })?;
        if text.is_empty() {
            return Err(TuneError::Rank { rank, problem: "has ended too soon: see what it said above".into() });
        }
        serde_json::from_str(&text)
            .map_err(|error| TuneError::Rank { rank, problem: format!("said {:?}: {error}", text.trim_end()) })
    }
}

/// A measuring process, which does not outlive this value.
struct Rank {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Drop for Rank {
    fn drop(&mut self) {
        // It has ended by itself, or there is an error to be reported anyway.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Measures. `command` makes the command that runs [`measure`] as the rank of that number;
/// `progress` is told how many of how many rounds are done.
pub fn run(command: impl Fn(u32) -> Command, mut progress: impl FnMut(usize, usize)) -> Result<Figures, TuneError> {
    let start = |rank: u32| {
        let mut child = command(rank)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|cause| TuneError::System { what: "cannot start a process to measure with", cause })?;
        let problem = "has no standard output";
        let said = child.stdout.take().ok_or(TuneError::Rank { rank: rank as usize, problem: problem.into() })?;
        Ok::<Rank, TuneError>(Rank { child, said: BufReader::new(said) })
    };
    let mut ranks = [start(0)?, start(1)?];
    let mut cards = Vec::new();
    for (i, rank) in ranks.iter_mut().enumerate() {
        match Line::read(i, &mut rank.said)? {
            Line::Cards(own) => cards.extend(own),
            _ => return Err(TuneError::Rank { rank: i, problem: "should have shown its cards".into() }),
        }
    }
    let all = Line::Cards(cards);
    for rank in &mut ranks {
        if let Some(to) = rank.child.stdin.take() {
            all.write(to)?;
        }
    }
    loop {
        match Line::read(0, &mut ranks[0].said)? {
            Line::Round(done, of) => progress(done, of),
            Line::Figures(figures) => return Ok(figures),
            Line::Cards(_) => return Err(TuneError::Rank { rank: 0, problem: "has shown its cards twice".into() }),
        }
    }
}
