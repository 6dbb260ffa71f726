//! Notification suppression: doorbells that are rung only if a thread of the neighbour sleeps, without reading across
//! the link. It works as the event index of virtio: a sleeper asks for one notification, and a ring is its answer.
//!
//! Each host has a table in the window of either neighbour, with two words per doorbell:
//!
//! - `armed`: the number of the request for a notification. The host writes it when a thread is about to sleep; the
//!   neighbour rings once for each number.
//! - `seen`: the latest number of the neighbour's own request that this host has seen. The host's monitor writes it
//!   ([`Echo`]), so late that every write which the host made before has arrived.
//!
//! A request is a posted write and may arrive late: the neighbour may have deposited an entry, found no request and not
//! rung. So a thread sleeps for at most [`UNSEEN`] until its request is known to have arrived *before* the thread
//! looked for work for the last time ([`Ticket::seen`]). All that the neighbour deposited before it saw the request has
//! arrived by then.

use crate::delegate::left_to_inner;
use crate::{NtbError, Port, Side, Ticket, Vector, DOORBELLS};
use ntbring_memory::{InWindow, OutWindow, Region};
use std::sync::atomic::{fence, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Longest sleep of a thread whose request for a notification may not have arrived yet.
pub const UNSEEN: Duration = Duration::from_millis(2);

/// Offset of the `seen` words in a table, bytes.
const SEEN: usize = 8 * DOORBELLS;

/// Size of a table in a window, bytes.
pub const TABLE: usize = 2 * SEEN;

/// Size of a host's own state, bytes: for each doorbell the current request; for each side and doorbell the latest
/// request of the neighbour that has been answered; for each side whether the neighbour is absent.
pub const STATE: usize = 8 * DOORBELLS + Side::BOTH.len() * 8 * DOORBELLS + ABSENT;

/// Size of the words that record the absence of neighbours, bytes.
const ABSENT: usize = 8 * Side::BOTH.len();

/// The tables at one link: the one that the neighbour writes, and the neighbour's that this host writes.
#[derive(Clone)]
pub struct Tables {
    incoming: InWindow,
    outgoing: OutWindow,
}

impl Tables {
    /// Returns the tables in two parts of windows, of [`TABLE`] bytes each.
    pub fn new(incoming: InWindow, outgoing: OutWindow) -> Tables {
        Tables { incoming, outgoing }
    }

    fn armed(&self, doorbell: usize) -> u32 {
        self.incoming.load(8 * doorbell) as u32
    }

    fn seen(&self, doorbell: usize) -> u32 {
        self.incoming.load(SEEN + 8 * doorbell) as u32
    }
}

/// The periodic work for the requests of the neighbour on one side, which one thread of a host does.
#[derive(Default)]
pub struct Echo {
    /// The requests at the previous step.
    previous: [u32; DOORBELLS],
    /// Number of steps for which each of them has been answered.
    answered: [u32; DOORBELLS],
}

impl Echo {
    /// Confirms the requests of the previous step: all entries that were deposited before the requests were seen have
    /// then arrived when the confirmation does. Repeats the `ring` of a doorbell, less and less often, while the
    /// neighbour makes no new request after it: the ring may have been lost. To be called about every 50 ms.
    pub fn step(&mut self, notices: &Notices, side: Side, ring: impl Fn(usize)) {
        let tables = &notices.tables[side as usize];
        for doorbell in 0..DOORBELLS {
            let (previous, armed) = (self.previous[doorbell], tables.armed(doorbell));
            tables.outgoing.store(SEEN + 8 * doorbell, previous.into());
            self.previous[doorbell] = armed;
            let answered = notices.answered(side, doorbell).load(Ordering::Relaxed);
            let is_answered = armed != 0 && answered == u64::from(armed);
            let steps = &mut self.answered[doorbell];
            *steps = if is_answered && armed == previous { steps.saturating_add(1) } else { 0 };
            if *steps > 1 && steps.is_power_of_two() {
                ring(doorbell);
            }
        }
        tables.outgoing.fence();
    }
}

/// The requests of a host and the answers to those of its neighbours. All processes of the host share its state.
pub struct Notices {
    state: Region,
    tables: [Tables; 2],
}

impl Notices {
    /// Returns the requests with their state in `state`, [`STATE`] bytes of memory of the host, initially zero.
    /// `tables` are those of the left and the right link.
    pub fn new(state: Region, tables: [Tables; 2]) -> Notices {
        Notices { state, tables }
    }

    /// Returns the current request of a doorbell: its number, and the number of rings when it was made.
    fn request(&self, doorbell: usize) -> &AtomicU64 {
        self.state.word(8 * doorbell)
    }

    /// Returns the latest request of the neighbour on a side that this host has answered.
    fn answered(&self, side: Side, doorbell: usize) -> &AtomicU64 {
        self.state.word(8 * DOORBELLS * (1 + side as usize) + 8 * doorbell)
    }

    fn absence(&self, side: Side) -> &AtomicU64 {
        self.state.word(STATE - ABSENT + 8 * side as usize)
    }

    /// Records the absence of the neighbour on a side: it has ended, or the link to it is down. No confirmation of
    /// requests is expected from an absent neighbour.
    pub fn set_absent(&self, side: Side, absent: bool) {
        self.absence(side).store(absent.into(), Ordering::Relaxed);
    }

    /// Asks both neighbours to ring the doorbell once, unless such a request is still open. `rings` is the number of
    /// rings so far. Returns true if the request is known to have arrived.
    fn ask(&self, doorbell: usize, rings: u32) -> bool {
        let request = self.request(doorbell);
        let mut now = request.load(Ordering::Acquire);
        let number = loop {
            let (number, at) = ((now >> 32) as u32, now as u32);
            if number != 0 && at == rings {
                break number;
            }
            let next = number.wrapping_add(1).max(1);
            let new = u64::from(next) << 32 | u64::from(rings);
            match request.compare_exchange(now, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break next,
                Err(other) => now = other,
            }
        };
        for tables in &self.tables {
            tables.outgoing.store(8 * doorbell, number.into());
            tables.outgoing.fence();
        }
        // Orders the request before the caller's search for work; pairs with the fence in `answers`.
        fence(Ordering::SeqCst);
        Side::BOTH
            .into_iter()
            .zip(&self.tables)
            .all(|(side, tables)| tables.seen(doorbell) == number || self.absence(side).load(Ordering::Relaxed) != 0)
    }

    /// Returns true if the neighbour on a side has asked for a ring of its doorbell since the latest answer; the caller
    /// must ring then.
    fn answers(&self, side: Side, doorbell: usize) -> bool {
        // Orders the caller's deposit before the load of the request.
        fence(Ordering::SeqCst);
        let armed = self.tables[side as usize].armed(doorbell).into();
        let answered = self.answered(side, doorbell);
        let before = answered.load(Ordering::Relaxed);
        before != armed && answered.compare_exchange(before, armed, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Returns the port of the link on `side` as one that rings only when the neighbour has asked for it, and whose
    /// vectors ask for it.
    pub fn port(self: &Arc<Self>, inner: Arc<dyn Port>, side: Side) -> Arc<dyn Port> {
        Arc::new(OnRequest { inner, side, notices: self.clone() })
    }
}

/// A port that rings on request only.
struct OnRequest {
    inner: Arc<dyn Port>,
    side: Side,
    notices: Arc<Notices>,
}

impl Port for OnRequest {
    left_to_inner! {
        index caps shortcuts incoming copy_engine segment incoming_offset scratchpad peer_scratchpad doorbells clear_doorbells
        link outages descriptors lose_rather_than_wait
    }

    fn outgoing(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError> {
        self.inner.outgoing(offset, len)
    }

    fn ring(&self, doorbell: usize) {
        if self.notices.answers(self.side, doorbell) {
            self.inner.ring(doorbell);
        }
    }

    fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        Arc::new(AskingVector { inner: self.inner.vector(doorbell), notices: self.notices.clone(), doorbell })
    }
}

/// A vector whose sleepers ask the neighbours to ring.
struct AskingVector {
    inner: Arc<dyn Vector>,
    notices: Arc<Notices>,
    doorbell: usize,
}

impl Vector for AskingVector {
    fn arm(&self) -> Ticket {
        let ticket = self.inner.arm();
        let seen = self.notices.ask(self.doorbell, ticket.rings);
        Ticket { seen: seen && ticket.seen, ..ticket }
    }

    fn ticket(&self) -> Ticket {
        Ticket { seen: false, ..self.inner.ticket() }
    }

    fn sleep(&self, ticket: Ticket, timeout: Duration) -> bool {
        self.inner.sleep(ticket, if ticket.seen { timeout } else { timeout.min(UNSEEN) })
    }

    fn disarm(&self) {
        self.inner.disarm()
    }
}

#[cfg(test)]
mod tests;
