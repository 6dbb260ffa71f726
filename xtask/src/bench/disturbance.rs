//! Detects whether other processes were running during the measurements.
//!
//! A load average cannot tell, since the benchmarks are a load themselves. The time that others have used is the CPU
//! time of all processes less that of xtask and its children.

use std::fs;

/// Largest part of the cores' time that others may use without a warning.
const TOLERATED: f64 = 0.02;

/// CPU time in clock ticks since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Ticks {
    /// Time of all cores, idle or not.
    all: f64,
    /// Time in which cores were busy.
    busy: f64,
    /// Time that the hypervisor has given to other virtual machines (steal time).
    stolen: f64,
    /// Time of this process and of its children that have ended.
    own: f64,
}

/// Ticks at the start of the period that is watched; None where the system does not report them.
pub struct Watch(Option<Ticks>);

/// CPU time that others have used, as parts of the cores' time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disturbance {
    /// Time of other processes.
    pub others: f64,
    /// Time of other virtual machines (steal time).
    pub stolen: f64,
}

impl Watch {
    /// Starts a period.
    pub fn start() -> Self {
        Self(now())
    }

    /// Returns the disturbance since the start; None where the system does not report it.
    pub fn end(&self) -> Option<Disturbance> {
        since(self.0?, now()?)
    }
}

impl Disturbance {
    /// Describes the disturbance, for the description of the machine.
    pub fn describe(&self) -> String {
        let percent = |part: f64| format!("{:.1}%", 100.0 * part);
        let (others, stolen) = (percent(self.others), percent(self.stolen));
        format!("other processes used {others} of the cores' time, the hypervisor withheld {stolen}")
    }

    /// Returns a warning if the disturbance exceeds the tolerance.
    pub fn warning(&self) -> Option<String> {
        let too_much = self.others > TOLERATED || self.stolen > TOLERATED;
        too_much.then(|| format!("while this was measured, {}: these figures cannot be trusted", self.describe()))
    }
}

fn now() -> Option<Ticks> {
    let own = own(&fs::read_to_string("/proc/self/stat").ok()?)?;
    machine(&fs::read_to_string("/proc/stat").ok()?, own)
}

fn since(start: Ticks, end: Ticks) -> Option<Disturbance> {
    let all = end.all - start.all;
    // The ticks of the different counters do not match exactly, so the difference may be negative.
    let others = ((end.busy - start.busy) - (end.own - start.own)).max(0.0);
    (all > 0.0).then(|| Disturbance { others: others / all, stolen: (end.stolen - start.stolen).max(0.0) / all })
}

/// Parses the line `cpu user nice system idle iowait irq softirq steal ...` of /proc/stat.
fn machine(stat: &str, own: f64) -> Option<Ticks> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = line.split_whitespace().map_while(|word| word.parse().ok()).take(8).collect();
    let [user, nice, system, idle, iowait, irq, softirq, stolen] = ticks.try_into().ok()?;
    // Time in interrupts belongs to no process.
    let busy = user + nice + system;
    Some(Ticks { all: busy + idle + iowait + irq + softirq + stolen, busy, stolen, own })
}

/// Sums up utime, stime, cutime and cstime, the 14th to 17th field of /proc/PID/stat. The second field may contain any
/// character but ends with a closing parenthesis.
fn own(stat: &str) -> Option<f64> {
    let (_, after) = stat.rsplit_once(')')?;
    let fields: Vec<f64> =
        after.split_whitespace().skip(11).take(4).map(|word| word.parse().ok()).collect::<Option<_>>()?;
    (fields.len() == 4).then(|| fields.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ours_is_the_others() {
        let start = machine("cpu  100 0 50 1000 0 0 0 10 0 0\ncpu0 1 1\n", 20.0).unwrap();
        let end = machine("cpu  180 0 70 1080 0 0 10 20 0 0\n", 100.0).unwrap();
        let found = since(start, end).unwrap();
        assert!((found.others - 0.1).abs() < 1e-9 && (found.stolen - 0.05).abs() < 1e-9, "{found:?}");
        assert!(found.warning().unwrap().contains("used 10.0% of"));
        assert_eq!(since(start, start), None);
        let quiet = Disturbance { others: 0.01, stolen: 0.0 };
        assert_eq!(quiet.warning(), None);
    }

    #[test]
    fn a_process_may_have_any_name() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 20 0";
        assert_eq!(own(stat), Some(11.0 + 12.0 + 13.0 + 14.0));
        assert_eq!(own("7 (a) S 1"), None);
        assert_eq!(machine("nothing", 0.0), None);
    }

    #[test]
    fn this_system_tells() {
        assert!(now().is_some());
    }
}
