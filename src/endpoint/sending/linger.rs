//! Retransmission for peers after a rank has left: its process may wait for them outside the library, without polling.

use super::outbox::Outbox;
use crate::progress_thread::ProgressThread;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// Interval between two checks for entries to retransmit.
const PAUSE: Duration = Duration::from_millis(1);

/// A progress thread that retransmits entries that peers have not taken.
pub struct Linger(ProgressThread<Vec<Outbox>>);

impl Linger {
    pub fn start(outboxes: Vec<Outbox>) -> std::io::Result<Linger> {
        let step = |outboxes: &mut Vec<Outbox>| {
            let cared = outboxes.iter_mut().try_for_each(|outbox| outbox.look_after(Instant::now()).map(drop));
            cared.inspect_err(|error| log::error!("{error}")).ok().map(|()| PAUSE)
        };
        ProgressThread::start("ntbring-linger", outboxes, PAUSE, step).map(Linger)
    }

    /// Stops the thread and returns its outboxes.
    pub fn end(mut self) -> Vec<Outbox> {
        self.0.stop();
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
