//! Retransmission of messages that may have been damaged on their way, and the work that a rank still does for its
//! peers after it has left.

use super::outbound::Outbox;
use super::{Endpoint, EndpointError};
use ntbring_host::thread;
use ntbring_ring::transfer::Transfer;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval between two checks for entries to retransmit.
const PAUSE: Duration = Duration::from_millis(1);

/// Peers may compute for any time before they take what was sent to them; after this time the user is informed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Interval between two checks for guests that no longer take anything.
const LOOKS: Duration = Duration::from_secs(1);

/// State of a rank that waits to leave.
#[derive(Default)]
pub(super) struct Farewell {
    since: Option<Instant>,
    looked: Option<Instant>,
    told: bool,
}

/// A thread that retransmits entries that peers have not taken.
pub(super) struct Linger {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Outbox>>,
}

impl Linger {
    pub fn start(outboxes: Vec<Outbox>) -> std::io::Result<Linger> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn("ntbring-linger", move || run(outboxes, &stopped))?;
        Ok(Linger { stop, thread })
    }

    /// Stops the thread and returns its outboxes.
    pub fn end(self) -> Vec<Outbox> {
        self.stop.store(true, Ordering::Release);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}

impl Endpoint {
    /// Retransmits entries that may have been damaged on their way.
    pub(super) fn look_after(&mut self) -> Result<(), EndpointError> {
        if let Some(caretaker) = &self.out.caretaker {
            let mut carrier = caretaker.carrier();
            if carrier.step(Instant::now())? {
                self.idle.busy();
            }
            self.idle.hurry(carrier.is_waiting());
            return Ok(());
        }
        let unsettled = self.out.is_unsettled();
        self.idle.hurry(unsettled);
        match unsettled {
            true => self.out.look_after(Instant::now()),
            false => Ok(()),
        }
    }

    /// Returns true once everything that was sent has been deposited and outlives this process. To be called
    /// repeatedly, with polls in between, when no more receives will be posted.
    pub fn flush(&mut self) -> Result<bool, EndpointError> {
        self.leave()?;
        let done = self.is_flushed() && !self.is_holding() && self.has_reached_guests();
        if !done {
            self.wait_to_leave(Instant::now());
        }
        Ok(done)
    }

    /// Watches guests while the rank waits to leave, and warns once if it takes long.
    fn wait_to_leave(&mut self, now: Instant) {
        let since = *self.farewell.since.get_or_insert(now);
        if now - *self.farewell.looked.get_or_insert(now) > LOOKS {
            self.farewell.looked = Some(now);
            self.look_for_guests(true);
        }
        if !self.farewell.told && now - since > PATIENCE {
            self.farewell.told = true;
            let state = self.describe();
            log::warn!("rank {} waits in MPI_Finalize until others take what was sent:\n{state}", self.members.rank());
        }
    }

    /// To be called when the endpoint will not be used any more. Until it is dropped a thread retransmits entries
    /// that peers have not taken, because this process may wait for those peers in a place where it does not poll.
    pub fn linger(&mut self) -> Result<(), EndpointError> {
        self.transfer.iter().for_each(Transfer::leave);
        self.guests.take_leave();
        if self.out.is_unsettled() {
            self.lingering = Some(Linger::start(self.out.give_away()).map_err(EndpointError::Thread)?);
        }
        Ok(())
    }
}

fn run(mut outboxes: Vec<Outbox>, stop: &AtomicBool) -> Vec<Outbox> {
    while !stop.load(Ordering::Acquire) {
        let cared = outboxes.iter_mut().try_for_each(|outbox| outbox.look_after(Instant::now()).map(drop));
        if let Err(error) = cared {
            log::error!("{error}");
            break;
        }
        std::thread::park_timeout(PAUSE);
    }
    outboxes
}
