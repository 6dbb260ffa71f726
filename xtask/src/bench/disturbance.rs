//! Whether something else was running while we measured.
//!
//! A load average cannot tell: the benchmarks are a load themselves. But what all processes have used together, less
//! what we and our children have used, is what others have used.

use std::fs;

/// Others may use this part of the cores' time before figures suffer.
const TOLERATED: f64 = 0.02;

/// Clock ticks since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Ticks {
    /// Of all cores, idle or not.
    all: f64,
    /// Of all cores, doing something.
    busy: f64,
    /// Not given to us by the hypervisor.
    stolen: f64,
    /// Of ours and of our children that have ended.
    own: f64,
}

/// Counts from its creation on.
pub struct Watch(Option<Ticks>);

/// What others have used, as parts of the cores' time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disturbance {
    /// Other processes.
    pub others: f64,
    /// Other virtual machines.
    pub stolen: f64,
}

impl Watch {
    /// Begins.
    pub fn start() -> Self {
        Self(now())
    }

    /// What has happened since; None where the system does not tell.
    pub fn end(&self) -> Option<Disturbance> {
        since(self.0?, now()?)
    }
}

impl Disturbance {
    /// For the description of the machine.
    pub fn describe(&self) -> String {
        let percent = |part: f64| format!("{:.1}%", 100.0 * part);
        let (others, stolen) = (percent(self.others), percent(self.stolen));
        format!("other processes used {others} of the cores' time, the hypervisor withheld {stolen}")
    }

    /// If it is worth one.
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
    // Ticks of different counters do not fit exactly.
    let others = ((end.busy - start.busy) - (end.own - start.own)).max(0.0);
    (all > 0.0).then(|| Disturbance { others: others / all, stolen: (end.stolen - start.stolen).max(0.0) / all })
}

/// The line `cpu user nice system idle iowait irq softirq steal ...`.
fn machine(stat: &str, own: f64) -> Option<Ticks> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<f64> = line.split_whitespace().map_while(|word| word.parse().ok()).take(8).collect();
    let [user, nice, system, idle, iowait, irq, softirq, stolen] = ticks.try_into().ok()?;
    // Interrupts are nobody's.
    let busy = user + nice + system;
    Some(Ticks { all: busy + idle + iowait + irq + softirq + stolen, busy, stolen, own })
}

/// utime, stime, cutime and cstime: the 14th to 17th field; the second may contain anything, but ends with a bracket.
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
