//! Facts about a job that its rank 0's entry in /proc tells.

use ntbring_ntb::timing::Model;
use serde::Serialize;
use std::fs;
use std::time::Duration;

/// A running job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Job {
    /// Process id of the job's rank 0.
    pub id: u32,
    /// Name of its program; None if it cannot be read.
    pub program: Option<String>,
    /// Time since rank 0 started, seconds; None if it cannot be read.
    pub running_s: Option<f64>,
    /// Value of NTBRING_LINK_MODEL, if the job has a link model.
    pub link_model: Option<String>,
    /// Bandwidth of the link model, bytes per second.
    #[serde(skip)]
    pub bandwidth: Option<f64>,
}

impl Job {
    /// Looks at the job whose rank 0 is process `id`.
    pub fn look(id: u32) -> Job {
        let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        let model = variable(&environment, "NTBRING_LINK_MODEL");
        let parsed = model.as_deref().and_then(|text| Model::parse(text).ok().flatten());
        let bandwidth = parsed.map(|model| model.bandwidth as f64);
        let link_model = model.filter(|_| bandwidth.is_some());
        Job { id, program: program(id), running_s: running(id), link_model, bandwidth }
    }

    /// Updates the time since the start.
    pub fn refresh(&mut self) {
        self.running_s = running(self.id).or(self.running_s);
    }
}

fn variable(environment: &[u8], name: &str) -> Option<String> {
    let variables = environment.split(|&byte| byte == 0).filter_map(|text| std::str::from_utf8(text).ok());
    variables.filter_map(|text| text.split_once('=')).find(|(its, _)| *its == name).map(|(_, value)| value.to_string())
}

/// Returns the last part of the first word of the command line.
fn program(id: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{id}/cmdline")).ok()?;
    let first = String::from_utf8_lossy(line.split(|&byte| byte == 0).next()?).into_owned();
    let name = first.rsplit('/').next().unwrap_or_default();
    // Control characters would disturb the terminal.
    let name: String = name.chars().filter(|c| !c.is_control()).collect();
    (!name.is_empty()).then_some(name)
}

/// Returns the fields of /proc/PID/stat after the name of the program; the first is the state.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(')')?.1.split_whitespace().map(String::from).collect())
}

/// Returns true if a signal or a debugger has stopped the process.
pub fn is_stopped(pid: u32) -> bool {
    stat(pid).is_some_and(|fields| matches!(fields.first().map(String::as_str), Some("T" | "t")))
}

/// Returns the time since a process started, seconds.
fn running(pid: u32) -> Option<f64> {
    /// Position of the start time among the fields after the name.
    const STARTED: usize = 19;
    /// Clock ticks a second, which are the same for all programs of Linux.
    const TICKS: f64 = 100.0;
    let started: f64 = stat(pid)?.get(STARTED)?.parse().ok()?;
    let up = fs::read_to_string("/proc/uptime").ok()?;
    let up: f64 = up.split_whitespace().next()?.parse().ok()?;
    let since = Duration::try_from_secs_f64(up - started / TICKS).unwrap_or_default();
    Some(since.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_seen() {
        let job = Job::look(std::process::id());
        assert!(job.program.is_some_and(|name| name.contains("ntbring")) && job.running_s.is_some());
        assert!(!is_stopped(std::process::id()));
        assert_eq!(Job::look(u32::MAX).program, None);
    }

    #[test]
    fn variables_are_found_by_their_whole_name() {
        let environment = b"XNTB=1\0NTB=gen3x8\0NTBX=2\0";
        assert_eq!(variable(environment, "NTB").as_deref(), Some("gen3x8"));
        assert_eq!(variable(environment, "NT"), None);
    }
}
