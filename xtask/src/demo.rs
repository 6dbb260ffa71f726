//! `cargo xtask run` without a program: runs the demo of `tests/mpi` and prints its results as a table.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::Deserialize;

use crate::mpi::Layout;
use crate::setup::Installed;
use crate::{mpi_programs, paths, process, ui};

/// Time limit of the demo. It needs far less; the limit only ends a run that hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// A line of the demo's output: the result of one check or of one pair of ranks.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(untagged)]
enum Line {
    Pair { pair: [usize; 2], latency_us: f64, bandwidth_mb_s: f64 },
    Check { check: String, ok: bool },
}

/// The fields used here of the statistics that each rank writes (`NTBRING_STATS`).
#[derive(Debug, Deserialize)]
struct Statistics {
    rank: usize,
    #[serde(default)]
    peers: Vec<Peer>,
}

#[derive(Debug, Deserialize)]
struct Peer {
    rank: usize,
    distance: usize,
    relayed: bool,
    msgs: u64,
}

/// Runs the demo and prints its table.
pub fn run(installed: &Installed, layout: &Layout) -> Result<ExitCode> {
    let programs = mpi_programs::build(installed)?;
    let dir = tempfile::tempdir().context("cannot make a temporary directory")?;
    let (lines, statistics) = (dir.path().join("demo.jsonl"), dir.path().join("stats.jsonl"));
    let log = paths::target().join("demo.log");
    let mut command = installed.mpi.run(layout, &[]);
    command.arg(programs.join("demo")).env("RING_DEMO_OUT", &lines).env("NTBRING_STATS", &statistics);
    let name = format!("demo: {} ranks on a ring of {} hosts", layout.ranks(), layout.hosts_used());
    let outcome = ui::step(&name, || process::run_captured(&mut command, &log, Some(LIMIT)))?;
    if !outcome.success() {
        return Err(ui::error_with_log(format!("the demo: {}", outcome.describe()), &log));
    }
    let lines: Vec<Line> = read(&lines)?;
    let statistics: Vec<Statistics> = read(&statistics)?;
    println!("\n{}\n", table(&lines, &statistics));
    Ok(ExitCode::from(u8::from(!checks(&lines))))
}

/// Compiles the demo of OpenSHMEM, `examples/shmem/ring.c`. Returns the path of the program.
pub fn shmem(installed: &Installed) -> Result<PathBuf> {
    let program = paths::target().join("shmem-demo");
    let mut compile = Command::new(installed.mpi.prefix().join("bin/oshcc"));
    compile.arg("-O2").arg(paths::root().join("examples/shmem/ring.c")).arg("-o").arg(&program);
    process::check_logged(&mut compile, &paths::target().join("demo.log"))?;
    Ok(program)
}

/// Prints the results of the checks. Returns false if one of them failed or if there was none.
fn checks(lines: &[Line]) -> bool {
    let mut all = None;
    for line in lines {
        if let Line::Check { check, ok } = line {
            println!("{check}: {}", if *ok { "ok" } else { "FAILED" });
            all = Some(all.unwrap_or(true) && *ok);
        }
    }
    all.unwrap_or(false)
}

/// Returns the table of a demo's results and statistics, both as text.
pub fn shown(lines: &str, statistics: &str) -> Result<String> {
    Ok(table(&parse(lines)?, &parse(statistics)?))
}

fn table(lines: &[Line], statistics: &[Statistics]) -> String {
    let header = ["ranks", "distance", "latency 8 B", "bandwidth 1 MiB", "messages direct", "relayed"];
    let rows: Vec<Vec<String>> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Pair { pair, latency_us, bandwidth_mb_s } => {
                let traffic = traffic(statistics, *pair);
                let distance = traffic.distance.map_or("-".to_string(), |hops| hops.to_string());
                Some(vec![
                    format!("{} - {}", pair[0], pair[1]),
                    distance,
                    format!("{latency_us:.2} us"),
                    format!("{bandwidth_mb_s:.0} MB/s"),
                    traffic.direct.to_string(),
                    traffic.relayed.to_string(),
                ])
            }
            Line::Check { .. } => None,
        })
        .collect();
    ui::table(&header, &rows)
}

#[derive(Debug, Default, PartialEq)]
struct Traffic {
    distance: Option<usize>,
    direct: u64,
    relayed: u64,
}

/// Sums up the messages that two ranks have sent each other over the ring, in both directions.
fn traffic(statistics: &[Statistics], [one, two]: [usize; 2]) -> Traffic {
    let mut traffic = Traffic::default();
    for (from, to) in [(one, two), (two, one)] {
        let peers = statistics.iter().filter(|line| line.rank == from).flat_map(|line| &line.peers);
        for peer in peers.filter(|peer| peer.rank == to) {
            traffic.distance = Some(peer.distance);
            match peer.relayed {
                false => traffic.direct += peer.msgs,
                true => traffic.relayed += peer.msgs,
            }
        }
    }
    traffic
}

fn read<T: DeserializeOwned>(file: &Path) -> Result<Vec<T>> {
    let text = fs::read_to_string(file).with_context(|| format!("nothing was written to {}", file.display()))?;
    parse(&text)
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<Vec<T>> {
    text.lines().map(|line| serde_json::from_str(line).with_context(|| format!("cannot understand: {line}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_get_their_traffic() {
        let statistics: Vec<Statistics> = [
            r#"{"rank":0,"host":0,"peers":[{"rank":1,"host":1,"distance":1,"relayed":false,"msgs":3,"bytes":9},
                {"rank":2,"host":2,"distance":2,"relayed":true,"msgs":5,"bytes":9}]}"#,
            r#"{"rank":2,"host":2,"peers":[{"rank":0,"host":0,"distance":2,"relayed":true,"msgs":7,"bytes":9}]}"#,
        ]
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
        let expected = Traffic { distance: Some(2), direct: 0, relayed: 12 };
        assert_eq!(traffic(&statistics, [0, 2]), expected);
        assert_eq!(traffic(&statistics, [0, 1]).direct, 3);
        assert_eq!(traffic(&statistics, [1, 2]), Traffic::default());
    }

    #[test]
    fn a_failed_check_or_none_at_all_is_a_failure() {
        let line = |text: &str| serde_json::from_str::<Line>(text).unwrap();
        let good = line(r#"{"check":"alltoall","ok":true}"#);
        let bad = line(r#"{"check":"alltoall","ok":false}"#);
        let pair = line(r#"{"pair":[0,1],"latency_us":1.2,"bandwidth_mb_s":5000.0}"#);
        assert!(!checks(&[pair]));
        assert!(!checks(&[bad]));
        assert!(checks(&[good]));
    }
}
