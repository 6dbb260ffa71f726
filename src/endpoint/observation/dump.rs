//! A dump of a rank's state to stderr on a signal, for the diagnosis of a hang.
//!
//! The handler only sets a flag; the rank writes its state at its next poll. A rank that sleeps in a wait is woken by
//! the signal itself. A rank that computes writes it when it next calls MPI.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// The flag that the signal handler sets.
pub struct Trigger {
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
