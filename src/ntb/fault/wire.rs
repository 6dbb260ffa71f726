//! The sending end of a link with faults: injects faults into each write and ring.

use super::dice::{Dice, Fate};
use super::injector::{count, Injector};
use super::late::Late;
use super::outage::Outage;
use crate::{LinkState, Port, Side, DOORBELLS, SCRATCHPADS};
use ntbring_memory::{OutWindow, WriteSink};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Size of a line, bytes: the largest unit of a window that crosses the link as a whole.
const LINE: usize = 64;

/// A posted write or ring on its way to the other end of the link.
#[derive(Clone)]
pub(super) enum Posted {
    /// Bytes to be written at an offset of a window.
    Bytes(OutWindow, usize, Vec<u8>),
    /// A word to be stored at an offset of a window.
    Word(OutWindow, usize, u64),
    /// A write of a scratchpad: its number and value.
    Scratchpad(usize, u32),
    /// A ring of the doorbell with this number.
    Ring(usize),
}

impl Posted {
    /// Returns the number of units (lines, words, scratchpads, rings) that it consists of.
    fn writes(&self) -> usize {
        match self {
            Posted::Bytes(_, offset, bytes) => lines(*offset, bytes.len()),
            _ => 1,
        }
    }

    fn flip(&mut self, bit: usize) {
        match self {
            Posted::Bytes(_, _, bytes) => bytes[bit / 8] ^= 1 << (bit % 8),
            Posted::Word(_, _, value) => *value ^= 1 << bit,
            Posted::Scratchpad(_, value) => *value ^= 1 << bit,
            Posted::Ring(_) => {}
        }
    }
}

/// Returns the number of lines that `len` bytes at `offset` touch.
fn lines(offset: usize, len: usize) -> usize {
    match len {
        0 => 0,
        _ => (offset + len - 1) / LINE - offset / LINE + 1,
    }
}

/// The link to the other end, which may be down.
pub(super) struct Cable {
    port: Arc<dyn Port>,
    injector: Arc<Injector>,
    side: Side,
    outages: Vec<Outage>,
}

impl Cable {
    /// Returns true if the link is down, by the schedule or by command.
    pub fn is_down(&self) -> bool {
        let by_schedule = || {
            let since = self.injector.since(self.side);
            since.is_some_and(|since| self.outages.iter().any(|outage| outage.is_on(since)))
        };
        self.port.link() == LinkState::Down || !self.outages.is_empty() && by_schedule()
    }

    /// Returns the number of times that the link has gone down, by the schedule or by command.
    pub fn outages(&self) -> u64 {
        let since = if self.outages.is_empty() { None } else { self.injector.since(self.side) };
        let scheduled = |since| self.outages.iter().map(|outage| outage.count(since)).sum::<u64>();
        self.port.outages() + since.map_or(0, scheduled)
    }

    fn lose(&self, writes: usize) {
        count(&self.injector.injected().outages, writes);
    }

    /// Delivers to the other end, or counts a loss if the link is down now.
    pub fn deliver(&self, posted: Posted) {
        if self.is_down() {
            return self.lose(posted.writes());
        }
        match posted {
            Posted::Bytes(window, offset, bytes) => window.write_bytes(offset, &bytes),
            Posted::Word(window, offset, value) => window.store(offset, value),
            Posted::Scratchpad(register, value) => self.port.peer_scratchpad(register, value),
            Posted::Ring(doorbell) => self.port.ring(doorbell),
        }
    }
}

/// The outgoing accesses of a port.
pub(super) struct Wire {
    cable: Arc<Cable>,
    /// The random decisions; None if this link has no random faults.
    dice: Option<Dice>,
    /// Bit mask of the doorbells that never ring.
    stuck: u16,
    lateness: Duration,
    /// The queue of delayed writes; None if the link has no delays.
    late: Option<Late>,
    /// Sequence numbers of the next write and the next ring.
    writes: AtomicU64,
    rings: AtomicU64,
}

impl Wire {
    pub fn new(port: Arc<dyn Port>, injector: Arc<Injector>) -> io::Result<Wire> {
        let (side, faults, place) = (port.side(), injector.faults(), *injector.place());
        let covered = faults.covers(&place, side);
        let (outages, dice) = (faults.outages(&place, side), covered.then(|| Dice::new(faults, &place, side)));
        let (lateness, stuck) = (faults.lateness, if covered { faults.stuck } else { 0 });
        let delays = covered && faults.delay.get() > 0.0;
        let cable = Arc::new(Cable { port, injector, side, outages });
        let late = delays.then(|| Late::start(cable.clone())).transpose()?;
        Ok(Wire { cable, dice, stuck, lateness, late, writes: AtomicU64::new(0), rings: AtomicU64::new(0) })
    }

    pub fn is_down(&self) -> bool {
        self.cable.is_down()
    }

    pub fn outages(&self) -> u64 {
        self.cable.outages()
    }

    /// Returns the random decisions if faults have begun.
    fn dice(&self) -> Option<&Dice> {
        self.dice.as_ref().filter(|_| self.cable.injector.since(self.cable.side).is_some())
    }

    /// Sends a write or ring with these faults. Returns a copy if it has to be sent once more.
    fn send(&self, mut posted: Posted, fate: Fate) -> Option<Posted> {
        let injected = self.cable.injector.injected();
        if fate.lost {
            count(if matches!(posted, Posted::Ring(_)) { &injected.bells } else { &injected.drops }, 1);
            return None;
        }
        if let Some(bit) = fate.flip {
            count(&injected.flips, 1);
            posted.flip(bit);
        }
        count(&injected.doubles, fate.double.into());
        let again = fate.double.then(|| posted.clone());
        match &self.late {
            None => self.cable.deliver(posted),
            Some(late) if fate.late => {
                count(&injected.delays, 1);
                late.hold(posted, self.lateness);
            }
            Some(late) => late.follow(posted),
        }
        again
    }

    /// Sends a write or ring without faults.
    fn pass(&self, posted: Posted) {
        self.send(posted, Fate::default());
    }

    fn pass_bytes(&self, to: &OutWindow, offset: usize, bytes: &[u8]) {
        match &self.late {
            Some(late) if !late.is_empty() => late.follow(Posted::Bytes(to.clone(), offset, bytes.to_vec())),
            _ => to.write_bytes(offset, bytes),
        }
    }

    /// Allocates `writes` sequence numbers and returns the first.
    fn number(&self, writes: usize) -> u64 {
        self.writes.fetch_add(writes as u64, Ordering::Relaxed)
    }

    /// Sends one write. Returns a copy if it has to be sent once more.
    fn write_one(&self, posted: Posted, bits: usize) -> Option<Posted> {
        if self.is_down() {
            self.cable.lose(1);
            return None;
        }
        let fate = self.dice().map_or_else(Fate::default, |dice| dice.write(self.number(1), bits));
        self.send(posted, fate)
    }

    pub fn scratchpad(&self, register: usize, value: u32) {
        assert!(register < SCRATCHPADS, "no scratchpad {register}");
        // Register writes stay in order with all writes before them, so they act as a fence.
        self.late.iter().for_each(|late| late.fence(None));
        if let Some(again) = self.write_one(Posted::Scratchpad(register, value), 32) {
            self.pass(again);
        }
    }

    pub fn ring(&self, doorbell: usize) {
        assert!(doorbell < DOORBELLS, "no doorbell {doorbell}");
        if self.is_down() {
            return self.cable.lose(1);
        }
        let mut fate = Fate::default();
        if let Some(dice) = self.dice() {
            fate = dice.ring(self.rings.fetch_add(1, Ordering::Relaxed));
            fate.lost |= self.stuck >> doorbell & 1 != 0;
        }
        self.send(Posted::Ring(doorbell), fate);
    }
}

/// The sink of one window's writes.
pub(super) struct Sink {
    plain: OutWindow,
    wire: Arc<Wire>,
    /// Doubled writes, whose second copies are delivered before the next fence.
    again: Mutex<Vec<Posted>>,
}

impl Sink {
    pub fn new(plain: OutWindow, wire: Arc<Wire>) -> Sink {
        Sink { plain, wire, again: Mutex::default() }
    }

    fn repeat(&self, posted: Option<Posted>) {
        if let Some(posted) = posted {
            self.again.lock().unwrap_or_else(|e| e.into_inner()).push(posted);
        }
    }
}

impl WriteSink for Sink {
    fn write(&self, offset: usize, bytes: &[u8]) {
        let wire = &self.wire;
        let writes = lines(offset, bytes.len());
        if wire.is_down() {
            return wire.cable.lose(writes);
        }
        let Some(dice) = wire.dice() else { return wire.pass_bytes(&self.plain, offset, bytes) };
        let first = wire.number(writes);
        // The bytes from `clean` on without a fault so far are sent together.
        let (mut clean, mut at) = (0, 0);
        for number in first..first + writes as u64 {
            let end = ((offset + at) / LINE * LINE + LINE - offset).min(bytes.len());
            let fate = dice.write(number, 8 * (end - at));
            if !fate.is_clean() {
                wire.pass_bytes(&self.plain, offset + clean, &bytes[clean..at]);
                let posted = Posted::Bytes(self.plain.clone(), offset + at, bytes[at..end].to_vec());
                self.repeat(wire.send(posted, fate));
                clean = end;
            }
            at = end;
        }
        wire.pass_bytes(&self.plain, offset + clean, &bytes[clean..]);
    }

    fn store(&self, offset: usize, value: u64) {
        self.repeat(self.wire.write_one(Posted::Word(self.plain.clone(), offset, value), 64));
    }

    fn fence(&self) {
        {
            // The lock is held during delivery, so a concurrent fence waits: the copies must not arrive after it
            // either.
            let mut again = self.again.lock().unwrap_or_else(|e| e.into_inner());
            again.drain(..).for_each(|posted| self.wire.pass(posted));
        }
        match &self.wire.late {
            None => self.plain.fence(),
            Some(late) => late.fence(Some(&self.plain)),
        }
    }
}
