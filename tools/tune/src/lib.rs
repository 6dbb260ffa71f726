//! Measurement of all transfer methods between two processes of this machine, and selection of the protocol
//! thresholds: the library behind `ntbring tune`.
//!
//! | module | contents |
//! |---|---|
//! | `plan` | plan of the measurement: methods, sizes, durations |
//! | `station` | one rank's end of one ring with its buffers: sends and receives by one method |
//! | `control`, `error` | messages between the measuring processes and their parent; errors |
//! | `rank` | a measuring process: rank 0 controls rank 1 and takes the time |
//! | [`choose`] | selection of thresholds from measured times |
//!
//! The messages go through [`ntbring_endpoint`] like those of the netmod, with headers of the same size. The work of
//! MPICH above it (matching, requests) costs about the same for every method and is not included.

pub mod choose;
mod control;
mod error;
mod plan;
mod rank;
mod station;

pub use error::TuneError;
pub use plan::Method;
pub use rank::measure;

use choose::Figures;
use control::Line;
use std::io::BufReader;
use std::process::{Child, ChildStdout, Command, Stdio};

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
            Line::Addresses(own) => cards.extend(own),
            _ => return Err(TuneError::Rank { rank: i, problem: "did not send its addresses first".into() }),
        }
    }
    let all = Line::Addresses(cards);
    for rank in &mut ranks {
        if let Some(to) = rank.child.stdin.take() {
            all.write(to)?;
        }
    }
    loop {
        match Line::read(0, &mut ranks[0].said)? {
            Line::Round(done, of) => progress(done, of),
            Line::Figures(figures) => return Ok(figures),
            Line::Addresses(_) => return Err(TuneError::Rank { rank: 0, problem: "sent its addresses twice".into() }),
        }
    }
}
