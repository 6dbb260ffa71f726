//! Warnings about hosts that are silent.

use crate::membership::Membership;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// State of the warnings about silent hosts. Each period of silence is reported once, and so is its end. A further
/// warning reports that this host's own monitor does not run.
#[derive(Default)]
pub struct Listener {
    silent: BTreeSet<usize>,
    /// Number of keep-alives of the own monitor, and the time for which this number has not changed.
    own: (u32, Duration),
    listened: Option<Instant>,
}

/// Upper bound of the time that one check adds to the time for which the own monitor has sent nothing: this process may
/// have been stopped together with it.
const LOOK_MAX: Duration = Duration::from_millis(200);

impl Listener {
    /// Records the hosts that are silent now. Returns the messages that the first rank of a host should log.
    pub fn listen(&mut self, members: &Membership) -> Vec<String> {
        match members.topology().local_of(members.rank()) {
            0 => {
                let mut said = self.changes(&members.silent(), members.silence_limit());
                // The warning is early enough before other hosts count this one as lost, but is not caused by every
                // stall of a processor.
                let stall = members.silence_limit() / 4;
                said.extend(members.beats().and_then(|beats| self.own_monitor(beats, Instant::now(), stall)));
                said
            }
            _ => Vec::new(),
        }
    }

    /// Records the number of keep-alives of the own monitor. Returns a warning, once, if it has not grown for `stall`.
    fn own_monitor(&mut self, beats: u32, now: Instant, stall: Duration) -> Option<String> {
        let passed = self.listened.map_or(Duration::ZERO, |at| now.saturating_duration_since(at).min(LOOK_MAX));
        self.listened = Some(now);
        let before = self.own;
        self.own = if beats == before.0 { (beats, before.1 + passed) } else { (beats, Duration::ZERO) };
        (before.1 < stall && self.own.1 >= stall).then(|| {
            "the monitor process of this host (ntbring-monitor) does not run: other hosts take this one for silent, \
             and their failures are not noticed here"
                .to_string()
        })
    }

    fn changes(&mut self, silent: &[(usize, Duration)], limit: Duration) -> Vec<String> {
        let now: BTreeSet<usize> = silent.iter().map(|(host, _)| *host).collect();
        let back = self.silent.difference(&now).map(|host| format!("host {host} is heard again"));
        let new = silent.iter().filter(|(host, _)| !self.silent.contains(host)).map(|(host, silence)| {
            let (silence, limit) = (silence.as_secs(), limit.as_secs());
            format!(
                "host {host} has sent no keep-alive for {silence} s: it is stopped, very slow or gone; after {limit} s \
                 (NTBRING_KEEPALIVE_TIMEOUT) its ranks count as lost"
            )
        });
        let said = back.chain(new).collect();
        self.silent = now;
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn every_silence_is_told_once() {
        let mut listener = Listener::default();
        let silent = [(1, Duration::from_secs(2))];
        let told = listener.changes(&silent, LIMIT);
        assert!(
            told.len() == 1 && told[0].contains("host 1") && told[0].contains("NTBRING_KEEPALIVE_TIMEOUT"),
            "{told:?}"
        );
        assert!(listener.changes(&[(1, Duration::from_secs(3))], LIMIT).is_empty());
        assert_eq!(listener.changes(&[], LIMIT), ["host 1 is heard again"]);
        assert_eq!(listener.changes(&silent, LIMIT).len(), 1);
    }

    #[test]
    fn a_monitor_of_the_own_host_that_does_not_run_is_told_once() {
        let (mut listener, start) = (Listener::default(), Instant::now());
        let mut look =
            |beats, seconds: f64| listener.own_monitor(beats, start + Duration::from_secs_f64(seconds), LIMIT / 4);
        // A long pause is no evidence: this process may have been stopped, too.
        assert!(look(1, 0.0).is_none() && look(1, 0.1).is_none() && look(1, 60.0).is_none() && look(2, 60.1).is_none());
        let told: Vec<_> = (1..200).filter_map(|i| look(2, 60.1 + 0.1 * f64::from(i))).collect();
        assert!(told.len() == 1 && told[0].contains("ntbring-monitor"), "{told:?}");
        assert!(look(3, 90.0).is_none());
    }
}
