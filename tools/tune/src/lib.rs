//! Measurement of all transfer methods between two processes of this machine, and selection of the protocol
//! thresholds: the library behind `ntbring tune`.
//!
//! | module | contents |
//! |---|---|
//! | `plan` | plan of the measurement: methods, sizes, durations |
//! | `station` | one rank's end of one ring with its buffers: sends and receives by one method |
//! | `rank` | a measuring process: rank 0 controls rank 1 and takes the time |
//! | [`choose`] | selection of thresholds from measured times |
//!
//! The messages go through [`ntbring_endpoint`] like those of the netmod, with headers of the same size. The work of
//! MPICH above it (matching, requests) costs about the same for every method and is not included.

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

/// Error: the measurement failed.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// A setting is invalid.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The two processes could not join the ring.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// A transfer between them failed.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// A system call failed.
    #[error("{what}: {cause}")]
    System {
        /// Description of the failed operation.
        what: &'static str,
        /// Error of the system.
        cause: std::io::Error,
    },
    /// The machine has too few cores.
    #[error("two cores are needed to measure messages between two ranks; this process may use {0}")]
    Cores(usize),
    /// A message arrived with modified bytes.
    #[error("a message of {bytes} bytes arrived with modified contents ({way})")]
    Wrong {
        /// Payload in bytes.
        bytes: usize,
        /// Transfer method.
        way: Method,
    },
    /// One of the two processes violated the control protocol.
    #[error("measuring rank {rank} {problem}")]
    Rank {
        /// Number of the rank.
        rank: usize,
        /// Description of the problem.
        problem: String,
    },
}

/// Control messages between the measuring processes and their parent, one per line.
#[derive(Serialize, Deserialize)]
enum Line {
    /// Addresses (cards) of a rank's ends as bytes; from the parent, those of both ranks.
    Cards(Vec<Vec<Vec<u8>>>),
    /// Number of completed rounds, and of all rounds.
    Round(usize, usize),
    /// Results of the measurement.
    Figures(Figures),
}

impl Line {
    fn write(&self, mut to: impl Write) -> Result<(), TuneError> {
        let told = serde_json::to_string(self).map_err(std::io::Error::from).and_then(|text| {
            writeln!(to, "{text}")?;
            to.flush()
        });
        told.map_err(|cause| TuneError::System { what: "cannot write to the other processes", cause })
    }

    fn read(rank: usize, from: &mut impl BufRead) -> Result<Line, TuneError> {
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

/// A measuring process, which is killed when this value is dropped.
struct Rank {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Drop for Rank {
    fn drop(&mut self) {
        // The process has ended by itself, or another error is reported anyway.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a measurement. `command` returns the command that runs [`measure`] as the given rank; `progress` is called
/// with the number of completed rounds and of all rounds.
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
            _ => return Err(TuneError::Rank { rank: i, problem: "did not send its cards first".into() }),
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
            Line::Cards(_) => return Err(TuneError::Rank { rank: 0, problem: "sent its cards twice".into() }),
        }
    }
}
