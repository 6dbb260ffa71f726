//! Liveness of other hosts, where their processes cannot be watched because they are on other machines.
//!
//! Each host has a [`Monitor`], a process beside its ranks. Monitors exchange *keep-alives* and *obituaries*: each has a
//! table in the window of either neighbour ([`Census`](census::Census)), into which it writes all that it knows, again
//! and again; so news pass from host to host, round the ring both ways. The monitor publishes what it knows for the ranks
//! of its host (`Table`). A host fails in one of three grades:
//!
//! - *gone*: its ranks have ended, and its monitor says so; the others know at once;
//! - *link down*: the reliability policy decides (`NTBRING_RELIABILITY`);
//! - *silent*: no keep-alive. A host that a debugger has stopped is slow, not dead: there is a warning after
//!   [`WARN_AFTER`], and its ranks count as lost after `NTBRING_SILENCE`.
//!
//! Keep-alives are not subject to injected faults and link models; nothing passes a link that `ntbring link` has taken
//! down.

pub(crate) mod census;
mod monitor;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use monitor::Channel;
pub use monitor::{Monitor, PERIOD};
pub(crate) use table::Table;

use crate::Membership;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Silence of a host after which its neighbours warn of it.
pub const WARN_AFTER: Duration = Duration::from_secs(2);

/// Warns of hosts that are silent, once for each time, says when they are heard again, and warns if this host's own
/// monitor does not run.
#[derive(Default)]
pub struct Listener {
    silent: BTreeSet<usize>,
    /// Keep-alives of the own monitor, and the time for which this number has not changed.
    own: (u32, Duration),
    listened: Option<Instant>,
}

/// The most that one look adds to the time for which the own monitor has sent nothing: this process may have been stopped
/// together with it.
const LOOK_MAX: Duration = Duration::from_millis(200);

impl Listener {
    /// Takes note of the hosts that are silent now, and returns what the first rank of a host should say about it.
    pub fn listen(&mut self, members: &Membership) -> Vec<String> {
        match members.topology().local_of(members.rank()) {
            0 => {
                let mut said = self.changes(&members.silent(), members.silence_limit());
                // Early enough before other hosts give this one up, but not at every stall of a processor.
                let patience = members.silence_limit() / 4;
                said.extend(members.beats().and_then(|beats| self.own_monitor(beats, Instant::now(), patience)));
                said
            }
            _ => Vec::new(),
        }
    }

    /// Takes note of the number of keep-alives of the own monitor. Returns a warning, once, if it has not grown for
    /// `patience`.
    fn own_monitor(&mut self, beats: u32, now: Instant, patience: Duration) -> Option<String> {
        let passed = self.listened.map_or(Duration::ZERO, |at| now.saturating_duration_since(at).min(LOOK_MAX));
        self.listened = Some(now);
        let before = self.own;
        self.own = if beats == before.0 { (beats, before.1 + passed) } else { (beats, Duration::ZERO) };
        (before.1 < patience && self.own.1 >= patience).then(|| {
            "the monitor process of this host (ntbring-monitor) does not run: other hosts take this one for silent, and \
             their failures are not noticed here"
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
                 (NTBRING_SILENCE) its ranks count as lost"
            )
        });
        let said = back.chain(new).collect();
        self.silent = now;
        said
    }
}
