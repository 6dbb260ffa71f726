//! The sending end of a link with faults: injects faults into each write and ring.

use super::cable::{lines, Cable, Posted, LINE};
use super::dice::{Dice, Fate};
use super::injector::{count, Injector};
use super::late::Late;
use crate::{Port, Side, DOORBELLS, SCRATCHPADS};
use ntbring_memory::{OutWindow, WriteSink};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

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
    pub fn new(port: Arc<dyn Port>, side: Side, injector: Arc<Injector>) -> io::Result<Wire> {
        let (faults, place) = (injector.faults(), *injector.place());
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
