//! The register page of a host without adapters: the part of real adapters that lies behind BAR 0.

use crate::timing::meter::METER;
use crate::{LinkState, Side, Vector, DOORBELLS, SCRATCHPADS};
use ntbring_host::{barrier, futex};
use ntbring_memory::Region;
use std::sync::atomic::{fence, AtomicU32, Ordering};
use std::time::Duration;

/// Size of the register page, bytes.
pub const PAGE: usize = 4096;

const LINE: usize = 64;
// The first line belongs to the file, if the page is in one.
const SCRATCHPAD: usize = LINE; // a line per side
const DOORBELL: usize = 3 * LINE; // a line per side
const LINK: usize = 5 * LINE; // a line per side: how often it went down or up; since when there are faults (only of the right one)
const FENCED: usize = 7 * LINE; // nonzero: some process of the host cannot do without a ringer's fence
const VECTOR: usize = 8 * LINE; // a line per vector: rings, sleepers
const METERS: usize = 32 * LINE; // for a link model: a meter per side

/// A doorbell register holds the doorbells that are pending and, this much further up, those that
/// have raised their vector since somebody last got ready to sleep on it.
const RAISED: u32 = DOORBELLS as u32;

/// The bit of a link's count of changes that says that it is down.
const DOWN: u32 = 1;

/// The registers of one host, mapped by its own processes and its neighbours'.
#[derive(Clone)]
pub struct Registers {
    page: Region,
    /// Whether this process's rings may do without a fence, as far as it depends on this process.
    expedited: bool,
}

impl Registers {
    /// The registers in the first page of a host's memory.
    pub fn new(page: Region) -> Self {
        assert!(page.len() >= PAGE, "the register page is too short");
        Registers { page, expedited: barrier::available() }
    }

    /// To be called by every process of the host before it can be rung: says whether it is able to
    /// spare its neighbours a fence a ring.
    pub fn attend(&self) {
        if !self.expedited {
            self.page.register(FENCED).store(1, Ordering::SeqCst);
        }
    }

    /// One of the scratchpads on a side.
    pub fn scratchpad(&self, side: Side, register: usize) -> &AtomicU32 {
        assert!(register < SCRATCHPADS, "no scratchpad {register}");
        self.page.register(SCRATCHPAD + side as usize * LINE + 4 * register)
    }

    fn doorbells(&self, side: Side) -> &AtomicU32 {
        self.page.register(DOORBELL + side as usize * LINE)
    }

    /// How often the link on that side has gone down or come up. It was up at first, so it is down if that is odd.
    fn link_changes(&self, side: Side) -> &AtomicU32 {
        self.page.register(LINK + side as usize * LINE)
    }

    /// What the port on a side says of its link.
    pub fn link(&self, side: Side) -> LinkState {
        match self.link_changes(side).load(Ordering::Acquire) & DOWN {
            0 => LinkState::Up,
            _ => LinkState::Down,
        }
    }

    /// How often that link has gone down.
    pub fn outages(&self, side: Side) -> u64 {
        u64::from(self.link_changes(side).load(Ordering::Acquire).div_ceil(2))
    }

    /// The port says this of its link from now on. Whoever sleeps at the host is woken, as by an adapter's interrupt.
    pub fn set_link(&self, side: Side, state: LinkState) {
        let change =
            |changes: u32| ((changes & DOWN != 0) != (state == LinkState::Down)).then(|| changes.wrapping_add(1));
        if self.link_changes(side).fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok() {
            (0..DOORBELLS).for_each(|vector| self.interrupt(vector));
        }
    }

    /// The word in which both ends of the right link find since when there are faults on it (`ntb::fault`).
    pub fn faults_since(&self) -> Region {
        self.page.part(LINK + Side::Right as usize * LINE + 8, 8)
    }

    /// Where a link model keeps the accounts of the port on that side.
    pub fn meter(&self, side: Side) -> Region {
        self.page.part(METERS + side as usize * METER, METER)
    }

    fn rings(&self, vector: usize) -> &AtomicU32 {
        assert!(vector < DOORBELLS, "no vector {vector}");
        self.page.register(VECTOR + vector * LINE)
    }

    fn sleepers(&self, vector: usize) -> &AtomicU32 {
        self.page.register(VECTOR + vector * LINE + 4)
    }

    /// What a ring from the neighbour on `side` does here: makes the doorbell pending, raises the
    /// vector.
    ///
    /// If an earlier ring has raised it and nobody has got ready to sleep or cleared the doorbell
    /// since, whoever does will look for work after that, so there is nothing to do: in a busy
    /// exchange a ring costs two loads (and a fence where [`barrier`] is not to be had).
    pub fn ring(&self, side: Side, doorbell: usize) {
        assert!(doorbell < DOORBELLS, "no doorbell {doorbell}");
        // Orders the deposit before the look at the bit; pairs with the barrier in `arm`.
        barrier::light(self.expedited && self.page.register(FENCED).load(Ordering::Relaxed) == 0);
        let bells = self.doorbells(side);
        let (pending, raised) = (1u32 << doorbell, 1u32 << doorbell << RAISED);
        if bells.load(Ordering::Relaxed) & raised == 0 {
            bells.fetch_or(pending | raised, Ordering::AcqRel);
            self.raise(doorbell);
        }
    }

    /// The doorbells that are pending.
    pub fn pending(&self, side: Side) -> u16 {
        self.doorbells(side).load(Ordering::Acquire) as u16
    }

    /// Makes doorbells not pending. What is rung after this is pending again.
    pub fn clear(&self, side: Side, bits: u16) {
        let bits = u32::from(bits);
        self.doorbells(side).fetch_and(!(bits | bits << RAISED), Ordering::SeqCst);
        barrier::heavy();
    }

    /// Raises a vector from inside the host.
    pub fn interrupt(&self, doorbell: usize) {
        fence(Ordering::SeqCst);
        self.raise(doorbell);
    }

    fn raise(&self, vector: usize) {
        if self.sleepers(vector).load(Ordering::SeqCst) != 0 {
            self.rings(vector).fetch_add(1, Ordering::AcqRel);
            futex::wake(self.rings(vector));
        }
    }
}

/// One interrupt vector of a host without adapters: a futex in its register page.
pub struct SoftVector {
    registers: Registers,
    doorbell: usize,
}

impl SoftVector {
    /// The vector that `doorbell` raises.
    pub fn new(registers: Registers, doorbell: usize) -> Self {
        SoftVector { registers, doorbell }
    }
}

impl Vector for SoftVector {
    fn arm(&self) -> u32 {
        let r = &self.registers;
        r.sleepers(self.doorbell).fetch_add(1, Ordering::SeqCst);
        let ticket = r.rings(self.doorbell).load(Ordering::SeqCst);
        // From here on a ring raises the vector. What was rung before belongs to a deposit which
        // the caller's next look for work will see; it stays pending.
        for side in Side::BOTH {
            r.doorbells(side).fetch_and(!(1 << self.doorbell << RAISED), Ordering::SeqCst);
        }
        barrier::heavy();
        ticket
    }

    fn ticket(&self) -> u32 {
        self.registers.rings(self.doorbell).load(Ordering::SeqCst)
    }

    fn sleep(&self, ticket: u32, timeout: Duration) -> bool {
        let rings = self.registers.rings(self.doorbell);
        if rings.load(Ordering::Acquire) == ticket {
            futex::wait(rings, ticket, timeout);
        }
        rings.load(Ordering::Acquire) != ticket
    }

    fn disarm(&self) {
        self.registers.sleepers(self.doorbell).fetch_sub(1, Ordering::SeqCst);
    }
}
