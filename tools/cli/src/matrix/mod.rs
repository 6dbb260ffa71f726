//! `ntbring matrix`: who sends how much to whom.
//!
//! | file | holds |
//! |---|---|
//! | `source` | the ranks' counters, of a running job or from a file |
//! | `traffic` | their sums, by rank or by host |
//! | `table` | the matrix as text |
//! | `heat_map` | the matrix as a drawing |

mod heat_map;
mod source;
mod table;
mod traffic;

use crate::reading::{find, look};
use clap::Args;
use source::Sender;
use std::error::Error;
use std::path::PathBuf;
use traffic::{Matrix, Unit};

/// Options of `matrix`.
#[derive(Args)]
pub struct MatrixArgs {
    /// Process id of rank 0 of the job; needed if several jobs are running
    #[arg(long, value_name = "PID")]
    job: Option<u32>,
    /// Reads the lines of NTBRING_STATS (or of `ntbring stats --json`) of one job from this file, instead of a running
    /// job
    #[arg(long, value_name = "FILE", conflicts_with = "job")]
    from: Option<PathBuf>,
    /// Sums the traffic of the ranks of each host
    #[arg(long)]
    hosts: bool,
    /// Shows numbers of messages instead of bytes
    #[arg(long)]
    messages: bool,
    /// Prints messages and bytes as one JSON object
    #[arg(long)]
    json: bool,
    /// Draws the matrix as a heat map into this SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Shows the traffic between the ranks of a job.
pub fn run(args: &MatrixArgs) -> Result<(), Box<dyn Error>> {
    let (name, senders) = match &args.from {
        Some(file) => (file.display().to_string(), source::read(file)?),
        None => {
            let (job, processes) = find(args.job)?;
            let ranks = look(job, &processes)?;
            if ranks.is_empty() {
                return Err(format!("no rank of job {job} has joined yet").into());
            }
            (format!("job {job}"), ranks.into_iter().map(|rank| Sender::from(rank.figures)).collect())
        }
    };
    let matrix = Matrix::of(&senders)?;
    let matrix = if args.hosts { matrix.by_host() } else { matrix };
    let unit = if args.messages { Unit::Messages } else { Unit::Bytes };
    if let Some(file) = &args.svg {
        let drawing = heat_map::draw(&name, &matrix, unit)?;
        std::fs::write(file, drawing).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    match args.json {
        true => println!("{}", serde_json::to_string(&matrix)?),
        false => print!("{}", table::show(&name, &matrix, unit)),
    }
    Ok(())
}
