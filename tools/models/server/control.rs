//! Commands to the server: faults of cables, and counts. Each command is a line, and so is its answer.
//!
//! | command | effect |
//! |---|---|
//! | `cable N out`, `cable N in` | pulls or plugs cable N |
//! | `flap N MS` | pulls cable N for MS milliseconds |
//! | `drop N COUNT` | loses the next COUNT writes through cable N in each direction |
//! | `counts` | prints the sums of the counts of all cables |

use anyhow::{bail, Context, Result};
use ntbring_models::{Cable, Counts, End};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Creates the socket for commands; one that an earlier server has left is replaced.
pub fn listen(path: &Path) -> std::io::Result<UnixListener> {
    let _ = std::fs::remove_file(path);
    UnixListener::bind(path)
}

/// Executes the commands of one client after the other. Returns if the socket fails.
pub fn serve(listener: &UnixListener, cables: &[Cable]) {
    for client in listener.incoming() {
        if let Err(error) = client.map_err(Into::into).and_then(|client| answer(client, cables)) {
            log::warn!("commands: {error:#}");
        }
    }
}

fn answer(client: UnixStream, cables: &[Cable]) -> Result<()> {
    let mut answers = client.try_clone()?;
    for line in BufReader::new(client).lines() {
        let line = line?;
        log::info!("command: {line}");
        match execute(&line, cables) {
            Ok(text) => writeln!(answers, "{text}")?,
            Err(error) => writeln!(answers, "error: {error:#}")?,
        }
    }
    Ok(())
}

fn execute(line: &str, cables: &[Cable]) -> Result<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let cable = |number: &str| cables.get(number.parse::<usize>().ok()?);
    let cable = |number: &str| cable(number).with_context(|| format!("there is no cable {number}"));
    match words[..] {
        ["cable", number, state @ ("in" | "out")] => cable(number)?.lock().set_cable(state == "in"),
        ["flap", number, time] => {
            let (cable, time) = (cable(number)?, time.parse().context("a number of milliseconds")?);
            cable.lock().set_cable(false);
            thread::sleep(Duration::from_millis(time));
            cable.lock().set_cable(true);
        }
        ["drop", number, count] => {
            let (cable, count) = (cable(number)?, count.parse().context("a number of writes")?);
            let mut chip = cable.lock();
            End::BOTH.into_iter().for_each(|end| chip.host(end).lose(count));
        }
        ["counts"] => return Ok(shown(&sum(cables))),
        _ => bail!("no command: {line:?}"),
    }
    Ok("ok".into())
}

fn sum(cables: &[Cable]) -> Counts {
    let mut sum = Counts::default();
    for cable in cables {
        let chip = cable.lock();
        for counts in End::BOTH.map(|end| chip.counts(end)) {
            sum.window_bytes += counts.window_bytes;
            sum.window_writes += counts.window_writes;
            sum.window_reads += counts.window_reads;
            sum.dropped += counts.dropped;
            sum.doorbells += counts.doorbells;
            sum.misunderstood += counts.misunderstood;
        }
    }
    sum
}

fn shown(counts: &Counts) -> String {
    format!(
        "window_bytes={} window_writes={} window_reads={} dropped={} doorbells={} misunderstood={}",
        counts.window_bytes,
        counts.window_writes,
        counts.window_reads,
        counts.dropped,
        counts.doorbells,
        counts.misunderstood
    )
}
