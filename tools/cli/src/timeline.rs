//! `ntbring timeline`: the parts of a timeline.

use clap::Subcommand;
use ntbring_timeline::{merge, Parts};
use std::error::Error;
use std::path::PathBuf;

/// Commands of `timeline`.
#[derive(Subcommand)]
pub enum TimelineCommand {
    /// Joins the parts FILE.RANK.part, which a job leaves if it does not end in MPI_Finalize, into FILE. A job that
    /// still runs is not disturbed.
    Merge {
        /// File that NTBRING_TIMELINE named
        file: PathBuf,
    },
}

/// Joins the parts, and prints what is in the trace.
pub fn run(command: &TimelineCommand) -> Result<(), Box<dyn Error>> {
    let TimelineCommand::Merge { file } = command;
    let merged = merge(file, Parts::All)?;
    println!("{}: {} events of {} ranks", file.display(), merged.events, merged.parts.len());
    let list = |ranks: &[u32]| ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    if !merged.unfinished.is_empty() {
        println!("running, or ended without MPI_Finalize: ranks {}", list(&merged.unfinished));
    }
    if !merged.missing.is_empty() {
        println!("without a part: ranks {}", list(&merged.missing));
    }
    if let (lost @ 1.., ranks) = merged.lost {
        println!("overwritten by later events: {lost} events of {ranks} ranks (NTBRING_TIMELINE_EVENTS)");
    }
    Ok(())
}
