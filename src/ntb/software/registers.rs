//! The register page of a host without adapters; it stands for the registers that real adapters have behind BAR 0.

use crate::timing::meter::METER;
use crate::{LinkState, Side, Ticket, Vector, DOORBELLS, SCRATCHPADS};
use ntbring_host::{barrier, futex};
use ntbring_memory::Region;
use std::sync::atomic::{fence, AtomicU32, Ordering};
use std::time::Duration;

/// Size of the register page, bytes.
pub const PAGE: usize = 4096;

const LINE: usize = 64;
// The first line is the header of the memory file, if the page lies in one.
const SCRATCHPAD: usize = LINE; // a line per side
const DOORBELL: usize = 3 * LINE; // a line per side
const LINK: usize = 5 * LINE; // a line per side: number of state changes; start time of faults (right side only)
const FENCED: usize = 7 * LINE; // nonzero: a process of the host has no membarrier, so rings need a fence
const VECTOR: usize = 8 * LINE; // a line per vector: number of rings, number of sleepers
const METERS: usize = 32 * LINE; // a meter per side, for a link model

/// Shift of the raised bits in a doorbell register. The low bits are the pending doorbells; the bits above are the
/// doorbells that have raised their vector since a thread last armed that vector.
const RAISED: u32 = DOORBELLS as u32;

/// Bit of a link's number of state changes that is set while the link is down.
const DOWN: u32 = 1;

/// The registers of one host, which its own processes and its neighbours' processes map.
#[derive(Clone)]
pub struct Registers {
    page: Region,
    /// True if `membarrier` is available to this process: then its rings need no fence, unless a process of the rung
    /// host lacks it.
    expedited: bool,
}

impl Registers {
    /// Returns the registers in `page`, the first page of a host's memory. Panics if it is shorter than [`PAGE`].
    pub fn new(page: Region) -> Self {
        assert!(page.len() >= PAGE, "the register page is too short");
        Registers { page, expedited: barrier::available() }
    }

    /// Records in the page if this process lacks `membarrier`; if no process of the host lacks it, the neighbours'
    /// rings need no fence. Every process of the host must call this before it can be rung.
    pub fn attend(&self) {
        if !self.expedited {
            self.page.register(FENCED).store(1, Ordering::SeqCst);
        }
    }

    /// Returns a scratchpad on `side`. Panics if `register` is not below [`SCRATCHPADS`].
    pub fn scratchpad(&self, side: Side, register: usize) -> &AtomicU32 {
        assert!(register < SCRATCHPADS, "no scratchpad {register}");
        self.page.register(SCRATCHPAD + side as usize * LINE + 4 * register)
    }

    fn doorbells(&self, side: Side) -> &AtomicU32 {
        self.page.register(DOORBELL + side as usize * LINE)
    }

    /// Returns the number of times that the link on `side` has gone down or come up. The link is initially up, so it is
    /// down if the number is odd.
    fn link_changes(&self, side: Side) -> &AtomicU32 {
        self.page.register(LINK + side as usize * LINE)
    }

    /// Returns the link state that the port on `side` reports.
    pub fn link(&self, side: Side) -> LinkState {
        match self.link_changes(side).load(Ordering::Acquire) & DOWN {
            0 => LinkState::Up,
            _ => LinkState::Down,
        }
    }

    /// Returns the number of times that the link on `side` has gone down.
    pub fn outages(&self, side: Side) -> u64 {
        u64::from(self.link_changes(side).load(Ordering::Acquire).div_ceil(2))
    }

    /// Makes the port on `side` report this link state from now on. A change wakes all sleepers of the host, as the
    /// interrupt of an adapter does.
    pub fn set_link(&self, side: Side, state: LinkState) {
        let change =
            |changes: u32| ((changes & DOWN != 0) != (state == LinkState::Down)).then(|| changes.wrapping_add(1));
        if self.link_changes(side).fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok() {
            (0..DOORBELLS).for_each(|vector| self.interrupt(vector));
        }
    }

    /// Returns the word that holds the time since which faults are injected on the right link ([`crate::fault`]). Both
    /// ends of the link use it.
    pub fn faults_since(&self) -> Region {
        self.page.part(LINK + Side::Right as usize * LINE + 8, 8)
    }

    /// Returns the memory in which a link model keeps the meter of the port on `side`.
    pub fn meter(&self, side: Side) -> Region {
        self.page.part(METERS + side as usize * METER, METER)
    }

    fn rings(&self, vector: usize) -> &AtomicU32 {
        assert!(vector < DOORBELLS, "no vector {vector}");
        self.page.register(VECTOR + vector * LINE)
    }

    /// Returns the number of threads that have armed the vector. A process that is killed between [`SoftVector::arm`] and
    /// [`SoftVector::disarm`] stays counted. The count only decides if a ring is worth a system call, so such a job pays
    /// for one that wakes no thread whenever it raises the vector, and nothing else changes.
    fn sleepers(&self, vector: usize) -> &AtomicU32 {
        self.page.register(VECTOR + vector * LINE + 4)
    }

    /// Executes a ring from the neighbour on `side`: makes the doorbell pending and raises its vector. Panics if there
    /// is no such doorbell.
    ///
    /// The ring is skipped if an earlier ring has raised the vector and no thread has armed it or cleared the doorbell
    /// since: a thread that does so later checks for work afterwards. In a busy exchange a ring therefore costs two
    /// loads (and a fence where `membarrier` is not available, see [`barrier`]).
    pub fn ring(&self, side: Side, doorbell: usize) {
        assert!(doorbell < DOORBELLS, "no doorbell {doorbell}");
        // Orders the deposit before the load of the raised bit; pairs with the heavy barriers in `arm` and `clear`.
        barrier::light(self.expedited && self.page.register(FENCED).load(Ordering::Relaxed) == 0);
        let bells = self.doorbells(side);
        let (pending, raised) = (1u32 << doorbell, 1u32 << doorbell << RAISED);
        if bells.load(Ordering::Relaxed) & raised == 0 {
            bells.fetch_or(pending | raised, Ordering::AcqRel);
            // Counted also if no thread sleeps now: the neighbour has answered the request of a thread that has woken
            // up since, so the next sleeper must make a new one (`crate::notice`).
            self.rings(doorbell).fetch_add(1, Ordering::SeqCst);
            if self.sleepers(doorbell).load(Ordering::SeqCst) != 0 {
                futex::wake(self.rings(doorbell));
            }
        }
    }

    /// Returns the pending doorbells on `side`, a bit each.
    pub fn pending(&self, side: Side) -> u16 {
        self.doorbells(side).load(Ordering::Acquire) as u16
    }

    /// Clears the given pending doorbells on `side`. A ring after the call makes its doorbell pending again.
    pub fn clear(&self, side: Side, bits: u16) {
        let bits = u32::from(bits);
        self.doorbells(side).fetch_and(!(bits | bits << RAISED), Ordering::SeqCst);
        barrier::heavy();
    }

    /// Raises the vector of a doorbell directly, without a link or a pending bit.
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
    /// Returns the vector that `doorbell` raises.
    pub fn new(registers: Registers, doorbell: usize) -> Self {
        SoftVector { registers, doorbell }
    }
}

impl Vector for SoftVector {
    fn arm(&self) -> Ticket {
        let r = &self.registers;
        r.sleepers(self.doorbell).fetch_add(1, Ordering::SeqCst);
        let rings = r.rings(self.doorbell).load(Ordering::SeqCst);
        // From here on a ring raises the vector. A ring from before belongs to a deposit that the caller sees when it
        // next checks for work; its doorbell stays pending.
        for side in Side::BOTH {
            r.doorbells(side).fetch_and(!(1 << self.doorbell << RAISED), Ordering::SeqCst);
        }
        barrier::heavy();
        Ticket { rings, seen: true }
    }

    fn ticket(&self) -> Ticket {
        Ticket { rings: self.registers.rings(self.doorbell).load(Ordering::SeqCst), seen: true }
    }

    fn sleep(&self, ticket: Ticket, timeout: Duration) -> bool {
        let rings = self.registers.rings(self.doorbell);
        if rings.load(Ordering::Acquire) == ticket.rings {
            futex::wait(rings, ticket.rings, timeout);
        }
        rings.load(Ordering::Acquire) != ticket.rings
    }

    fn disarm(&self) {
        self.registers.sleepers(self.doorbell).fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_that_was_killed_neither_hides_nor_wakes_others() {
        let registers = Registers::new(Region::anonymous(PAGE));
        let vectors = [(); 2].map(|()| SoftVector::new(registers.clone(), 3));
        // The first thread is killed while the vector is armed.
        vectors[0].arm();
        for _ in 0..3 {
            let ticket = vectors[1].arm();
            assert!(!vectors[1].sleep(ticket, Duration::from_millis(1)), "nothing has rung");
            registers.ring(Side::Left, 3);
            assert!(vectors[1].sleep(ticket, Duration::from_secs(60)));
            vectors[1].disarm();
            registers.clear(Side::Left, 1 << 3);
            assert_eq!(registers.sleepers(3).load(Ordering::SeqCst), 1, "the count neither grows nor falls");
        }
    }
}
