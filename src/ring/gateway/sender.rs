//! Sending end of a tunnel: numbers packets, keeps them until they are confirmed, and sends lost ones again. Without
//! I/O.

use super::packet::{Content, Packet, HEAD};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Number of bytes of packets that may be without confirmation before no more entries are taken.
pub(super) const WINDOW: usize = 64 << 10;

/// First and longest time after which packets without confirmation are sent again.
const RESEND: Duration = Duration::from_millis(100);
const RESEND_MAX: Duration = Duration::from_secs(2);

/// Interval at which the receiver is asked for a confirmation while nothing is sent, so that the sender learns of its
/// end even if the packet that says so was lost.
const PROBE_EVERY: Duration = Duration::from_secs(2);

/// Sending end of a tunnel. Packets are numbered from 0; the first one opens the tunnel.
pub(super) struct Sender {
    /// Packets that are not known to be placed in the receiver's lane.
    kept: VecDeque<Content>,
    /// Bytes in `kept`.
    bytes: usize,
    /// Number of packets known to be placed, and of those known to be received.
    placed: u64,
    received: u64,
    /// Number of the next packet to be sent, and the largest value that it has had.
    next: u64,
    sent: u64,
    /// Largest number of packets that may be sent beyond those received: 1 after a loss, and doubled by each
    /// confirmation, so that a slow link is not flooded with repetitions.
    burst: u64,
    /// Number of attempts since the last confirmation of anything new.
    attempts: u32,
    /// Time of the next attempt, while there are packets without confirmation.
    due: Option<Instant>,
    /// Set if the receiver has to be asked for a confirmation.
    asks: bool,
    /// Time of the latest packet.
    active: Option<Instant>,
}

/// Returns the number of bytes that a packet takes.
pub(super) fn size(content: &Content) -> usize {
    match content {
        Content::Data(fragment) => HEAD + fragment.bytes.len(),
        _ => HEAD,
    }
}

impl Sender {
    /// Returns a sender whose first packet is `open`.
    pub fn new(open: Content) -> Sender {
        let bytes = size(&open);
        let kept = VecDeque::from([open]);
        Sender {
            kept,
            bytes,
            placed: 0,
            received: 0,
            next: 0,
            sent: 0,
            burst: u64::MAX,
            attempts: 0,
            due: None,
            asks: false,
            active: None,
        }
    }

    /// Returns true if the tunnel takes another entry.
    pub fn has_room(&self) -> bool {
        self.bytes < WINDOW
    }

    /// Returns true if all packets are confirmed to be placed.
    pub fn is_idle(&self) -> bool {
        self.kept.is_empty()
    }

    /// Returns the number of packets that are confirmed to be placed.
    pub fn placed(&self) -> u64 {
        self.placed
    }

    /// Adds a packet. Returns its number.
    pub fn push(&mut self, content: Content) -> u64 {
        self.bytes += size(&content);
        self.kept.push_back(content);
        self.placed + self.kept.len() as u64 - 1
    }

    /// Returns the next packet to be sent, if there is one. Before the receiver has confirmed the first packet, that is
    /// the only one.
    pub fn next(&mut self, now: Instant) -> Option<Packet> {
        if self.due.is_some_and(|due| due <= now) {
            self.attempts = self.attempts.saturating_add(1);
            self.due = Some(now + (RESEND * 2_u32.saturating_pow(self.attempts.min(8))).min(RESEND_MAX));
            // Packets that were received, but have no room yet, are not sent again.
            (self.next, self.burst, self.asks) = (self.received, 1, self.received > self.placed);
        }
        let is_quiet = self.active.is_some_and(|active| now.saturating_duration_since(active) >= PROBE_EVERY);
        // Before the receiver has confirmed the first packet, it would take the question for one of an unknown tunnel.
        if std::mem::take(&mut self.asks) || is_quiet && self.received > 0 {
            self.active = Some(now);
            return Some(Packet::Probe);
        }
        if self.next > 0 && self.received == 0 || self.next - self.received >= self.burst {
            return None;
        }
        let number = self.next;
        let content = self.kept.get((number - self.placed) as usize)?.clone();
        self.next += 1;
        self.sent = self.sent.max(self.next);
        self.due.get_or_insert(now + RESEND);
        self.active = Some(now);
        Some(Packet::Content(number, content))
    }

    /// Handles a confirmation that `received` packets have arrived, of which the last `waiting` are not placed yet.
    /// Returns true if further packets were placed. Confirmations that are older than others, or of packets that were
    /// never sent, have no effect.
    pub fn confirm(&mut self, received: u64, waiting: u32, now: Instant) -> bool {
        let Some(placed) = received.checked_sub(waiting.into()) else { return false };
        if received > self.sent || received < self.received || placed < self.placed {
            return false;
        }
        let (is_news, are_placed) = (received > self.received || placed > self.placed, placed > self.placed);
        for content in self.kept.drain(..(placed - self.placed) as usize) {
            self.bytes -= size(&content);
        }
        (self.placed, self.received, self.next) = (placed, received, self.next.max(received));
        if is_news {
            (self.attempts, self.burst) = (0, self.burst.saturating_mul(2));
            self.due = (!self.kept.is_empty() && self.sent > self.placed).then(|| now + RESEND);
        }
        are_placed
    }

    /// Returns the time until the next attempt; None while nothing waits for a confirmation.
    pub fn rest(&self, now: Instant) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(now))
    }
}
