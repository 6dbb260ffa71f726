//! Liveness of other hosts, where their processes cannot be watched because they are on other machines.
//!
//! Each host has a [`Monitor`], a process beside its ranks. Monitors exchange *keep-alives* and *obituaries*: each has
//! a table in the window of either neighbour (`LivenessView`), into which it periodically writes its whole knowledge;
//! so news passes from host to host, in both directions round the ring. The monitor publishes its knowledge for the
//! ranks of its host (`Table`). Three kinds of failure of a host are distinguished:
//!
//! - *gone*: its ranks have ended, and its monitor reports that; the other hosts learn it at once;
//! - *link down*: the treatment depends on the reliability policy (`NTBRING_RELIABILITY`);
//! - *silent*: no keep-alive arrives. A host that a debugger has stopped is slow, not dead: there is a warning after
//!   [`WARN_AFTER`], and its ranks count as lost after `NTBRING_KEEPALIVE_TIMEOUT`.
//!
//! Keep-alives are not subject to injected faults and link models; but they do not pass a link that `ntbring link` has
//! taken down.
//!
//! | file | holds |
//! |---|---|
//! | `view` | knowledge of a host about the liveness of all hosts and ranks |
//! | `table` | the table in which a host's monitor publishes it for the host's ranks |
//! | `monitor` | the process that exchanges keep-alives and obituaries |
//! | `listener` | warnings of hosts that are silent |

mod listener;
mod monitor;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod view;

pub use listener::Listener;
pub(crate) use monitor::Channel;
pub use monitor::{Monitor, PERIOD};
pub use table::WARN_AFTER;
