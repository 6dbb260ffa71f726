//! A dump of a rank's state to stderr on a signal, for the diagnosis of a hang.
//!
//! The handler only sets a flag; the rank writes its state at its next poll. A rank that sleeps in a wait is woken by
//! the signal itself. A rank that computes writes it when it next calls MPI.

use super::Endpoint;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// The flag that the signal handler sets.
pub(super) struct Trigger {
    flag: Arc<AtomicBool>,
    registered: Option<signal_hook::SigId>,
}

impl Trigger {
    pub fn new(signal: Option<i32>) -> Trigger {
        let flag = Arc::new(AtomicBool::new(false));
        let registered = signal.and_then(|signal| match signal_hook::flag::register(signal, flag.clone()) {
            Ok(id) => Some(id),
            Err(error) => {
                log::warn!("NTBRING_DUMP_SIGNAL: signal {signal} cannot be caught: {error}");
                None
            }
        });
        Trigger { flag, registered }
    }

    #[inline]
    pub fn fired(&self) -> bool {
        self.flag.load(Ordering::Relaxed) && self.flag.swap(false, Ordering::Relaxed)
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        if let Some(id) = self.registered {
            signal_hook::low_level::unregister(id);
        }
    }
}

impl Endpoint {
    /// Returns the state as lines, each of which names the rank.
    pub fn describe(&self) -> String {
        let topology = self.members.topology();
        let vci = if self.vci > 0 { format!(", VCI {},", self.vci) } else { String::new() };
        let (rank, host) = (self.members.rank(), self.members.host());
        let who = format!("ntbring rank {rank}{vci} on host {host} of {}", topology.hosts());
        let mut lines = self.out.describe();
        lines.extend(self.out.caretaker.iter().flat_map(|caretaker| caretaker.carrier().describe()));
        lines.extend(self.inbound.describe());
        lines.extend(self.credits.describe());
        lines.push(self.offers.describe());
        lines.push(self.remotes.describe());
        lines.extend(self.groups.describe());
        lines.extend(self.describe_guests());
        lines.extend(self.greetings.describe());
        lines.extend(self.transfer.iter().flat_map(|t| t.describe()));
        lines.extend(self.members.injector().map(|i| format!("faults injected: {}", i.injected())));
        lines.push(format!("slept {} times, returned {} heads", self.idle.sleeps(), self.inbound.head_updates));
        lines.iter().map(|line| format!("{who}: {line}\n")).collect()
    }

    pub(super) fn describe_to_stderr(&self) {
        eprint!("{}", self.describe());
    }
}
