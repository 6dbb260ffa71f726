//! `ntbring top`: a running job live.
//!
//! | file | holds |
//! |---|---|
//! | `source` | reads the stats pages of the job, again and again |
//! | `sample`, `change`, `links`, `state`, `detail`, `job` | two successive readings become rates: the data of both views |
//! | `keys` | the effect of keys on the view |
//! | `view`, `screen` | the view in the terminal |
//! | `web` | the view as a page for a browser |

mod change;
mod detail;
mod job;
mod keys;
mod links;
mod sample;
mod screen;
mod source;
mod state;
#[cfg(test)]
mod testing;
mod units;
mod view;
mod web;

use crate::reading::seconds;
use clap::Args;
use source::Source;
use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

/// Width of the text of `--once`, characters, unless COLUMNS gives it.
const WIDTH: u16 = 100;

/// Options of `top`.
#[derive(Args)]
pub struct TopArgs {
    /// Process id of rank 0 of the job; needed if several jobs are running
    #[arg(long, value_name = "PID")]
    job: Option<u32>,
    /// Time between two readings
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: Duration,
    /// Prints one screen as plain text, with the rates of one interval, and ends
    #[arg(long, conflicts_with = "web")]
    once: bool,
    /// Shows the job as a page for a browser on this machine, and prints its address
    #[arg(long)]
    web: bool,
    /// Port of the page on 127.0.0.1; by default any that is free
    #[arg(long, value_name = "N", requires = "web", conflicts_with = "once", default_value_t = 0)]
    port: u16,
}

/// Shows a job.
pub fn run(args: &TopArgs) -> Result<(), Box<dyn Error>> {
    let mut source = Source::find(args.job)?;
    if args.web {
        return web::run(source, args.port, args.interval);
    }
    if !args.once {
        return screen::run(source, args.interval);
    }
    source.next()?;
    sleep(args.interval);
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    print!("{}", view::text(&source.next()?, columns.unwrap_or(WIDTH).max(80))?);
    Ok(())
}
