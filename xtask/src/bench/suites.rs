//! `bench compare --suites`: times of directories of MPICH's test suite, with ntbring and with Debian's mpich over UCX.
//! The programs are of many kinds, most of them with more ranks than this machine may have cores, so that the time
//! depends much on how ranks wait.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::bench::compare::{rounded, Entry};
use crate::bench::contestants::{Contestant, Role, ON_UCX, OURS};
use crate::bench::figures::Figures;
use crate::mpich_test::{self, MpichTestArgs};
use crate::setup::SetupArgs;
use crate::ui;

/// The default directories.
pub const DIRS: [&str; 2] = ["coll", "rma"];

/// Prefix of the names of a suite's figures, before its directory.
const PREFIX: &str = "suite_";
/// Ending of the names of the figures that count tests that ran out of time.
const TIMED_OUT: &str = "_timed_out";

/// The target: our time over the peer's.
const TO_REACH: f64 = 0.25;

/// Number of hosts of the ring, which is also stored as the figures' number of ranks.
const HOSTS: usize = 4;

/// Returns true if suites are timed with this contestant.
pub fn takes_part(one: &Contestant) -> bool {
    one.name == OURS || one.name == ON_UCX
}

/// Runs the directories with the contestants that take part and adds the times to the figures. A contestant whose suite
/// cannot be run gets a note instead.
pub fn measure(
    dirs: &[String],
    contestants: &[Contestant],
    setup: &SetupArgs,
    figures: &mut Figures,
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    for dir in dirs {
        for one in contestants.iter().filter(|one| takes_part(one)) {
            println!("\n{dir} with {}:", one.name);
            ui::flush();
            let env = one.env.clone();
            let timed = prefix(one).and_then(|with_mpi| {
                mpich_test::time(&MpichTestArgs::timed(setup.clone(), dir, with_mpi, env))
                    .with_context(|| format!("{}: the suite's {dir}", one.name))
            });
            let timing = match timed {
                Err(error) if one.role == Role::Peer && !crate::process::interrupted() => {
                    notes.push(format!("{error:#}: skipped"));
                    continue;
                }
                other => other?,
            };
            let mut push = |test: String, value, unit| figures.push(one.name, HOSTS, &test, value, unit);
            push(format!("{PREFIX}{dir}"), timing.elapsed.as_secs_f64(), "s");
            push(format!("{PREFIX}{dir}{TIMED_OUT}"), timing.timed_out as f64, "tests");
            if timing.failed > 0 {
                let (tests, failed, timed_out) = (timing.tests, timing.failed, timing.timed_out);
                notes.push(format!(
                    "{}: {failed} of {tests} tests of the suite's {dir} failed, {timed_out} of them by running out of time",
                    one.name
                ));
            }
        }
    }
    Ok(notes)
}

/// Returns the directory in which another MPI is installed; None for ntbring.
fn prefix(one: &Contestant) -> Result<Option<PathBuf>> {
    if one.role != Role::Peer {
        return Ok(None);
    }
    let prefix = one.mpicc.as_deref().and_then(Path::parent).and_then(Path::parent);
    prefix.map(|dir| Some(dir.to_path_buf())).context("its mpicc is not in a directory bin")
}

/// Returns the lines of the comparison: one for each directory that has figures and whose name contains `only`.
pub fn entries(figures: &Figures, only: Option<&str>) -> Vec<Entry> {
    let tests = figures.tests().into_iter().map(|(test, _)| test);
    let suites = tests.filter(|test| test.starts_with(PREFIX) && !test.ends_with(TIMED_OUT));
    suites.filter(|suite| only.is_none_or(|only| suite.contains(only))).map(|suite| entry(figures, suite)).collect()
}

fn entry(figures: &Figures, suite: String) -> Entry {
    let time = |mpi| figures.median(&suite, HOSTS, 0, mpi);
    let timed_out = |mpi| figures.median(&format!("{suite}{TIMED_OUT}"), HOSTS, 0, mpi).unwrap_or_default() as usize;
    let (ours, peer) = (time(OURS), time(ON_UCX));
    let ratio = ours.zip(peer).map(|(ours, peer)| ours / peer);
    let timed_out = [OURS, ON_UCX].map(timed_out);
    Entry {
        ours: ours.map(rounded),
        best_peer: peer.map(rounded),
        peer: peer.map(|_| ON_UCX.to_string()),
        ratio: ratio.map(rounded),
        limit: Some(TO_REACH),
        unit: "s".to_string(),
        better: "lower",
        to_reach: Some(TO_REACH),
        of_limit: None,
        of_limit_to_reach: None,
        // The time of a test that hangs is its limit, so a total that contains one does not count as reached.
        reached: ratio.map(|ratio| ratio <= TO_REACH && timed_out[0] == 0),
        runs: [ours, peer].map(|time| time.map(|_| 1)),
        spread: [None, None],
        cores_us: None,
        shape: None,
        timed_out: Some(timed_out),
        name: suite,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::compare;

    #[test]
    fn a_suite_is_a_line_with_its_time_outs() {
        let mut figures = Figures::default();
        assert!(entries(&figures, None).is_empty());
        figures.push(OURS, HOSTS, "suite_coll", 100.0, "s");
        figures.push(OURS, HOSTS, "suite_coll_timed_out", 0.0, "tests");
        let text = serde_json::to_string(&entries(&figures, None)[0]).unwrap();
        assert!(text.contains(r#""best_peer":null"#) && text.contains(r#""reached":null"#), "{text}");
        figures.push(ON_UCX, HOSTS, "suite_coll", 500.0, "s");
        figures.push(ON_UCX, HOSTS, "suite_coll_timed_out", 2.0, "tests");
        let all = entries(&figures, Some("coll"));
        assert_eq!(all.len(), 1);
        let text = serde_json::to_string(&all[0]).unwrap();
        let start =
            r#"{"name":"suite_coll","ours":100.0,"best_peer":500.0,"peer":"mpich-ucx","ratio":0.2,"limit":0.25"#;
        assert!(text.starts_with(start) && text.contains(r#""timed_out":[0,2]"#), "{text}");
        let cells = compare::cells(&all[0]);
        assert_eq!((cells[1].as_str(), cells[2].as_str()), ("100 s", "500 s, 2 timed out (mpich-ucx)"));
        assert_eq!((cells[5].as_str(), cells[6].as_str()), ("yes", "-"));
        assert!(entries(&figures, Some("rma")).is_empty());
        figures.push(OURS, HOSTS, "suite_rma", 1.0, "s");
        figures.push(OURS, HOSTS, "suite_rma_timed_out", 1.0, "tests");
        figures.push(ON_UCX, HOSTS, "suite_rma", 500.0, "s");
        assert_eq!(entries(&figures, Some("rma"))[0].reached, Some(false), "one of ours timed out");
    }
}
