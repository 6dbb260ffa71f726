//! The register page of a host without adapters; it stands for the registers that real adapters have behind BAR 0.

use crate::timing::meter::METER;
use crate::{LinkState, PortIndex, PortList, Ticket, Vector, DOORBELLS, SCRATCHPADS};
use ntbring_host::{barrier, futex};
use ntbring_memory::Region;
use std::sync::atomic::{fence, AtomicU32, Ordering};
use std::time::Duration;

/// Size of the register page, bytes.
pub const PAGE: usize = 4096;

const LINE: usize = 64;
// The first line is the header of the memory file, if the page lies in one.
/// A line per port: scratchpads; number of link state changes; start time of faults.
const CONTROL: usize = LINE;
const LINK: usize = CONTROL + 4 * SCRATCHPADS;
const FAULTS_SINCE: usize = LINK + 8;
/// A line per port.
const DOORBELL: usize = CONTROL + PortIndex::MAX_PORTS * LINE;
/// Nonzero: a process of the host has no membarrier, so rings need a fence.
const FENCED: usize = DOORBELL + PortIndex::MAX_PORTS * LINE;
/// The code of the list of ports that the host uses.
const PORTS: usize = FENCED + 8;
/// A line per vector: number of rings, number of sleepers.
const VECTOR: usize = FENCED + LINE;
/// A meter per port, for a link model.
const METERS: usize = VECTOR + DOORBELLS * LINE;

const _: () = assert!(METERS + PortIndex::MAX_PORTS * METER <= PAGE && FAULTS_SINCE + 8 <= CONTROL + LINE);

/// Shift of the raised bits in a doorbell register. The low bits are the pending doorbells; the bits above are the
/// doorbells that have raised their vector since a thread last armed that vector.
const RAISED: u32 = DOORBELLS as u32;

/// Bit of a link's number of state changes that is set while the link is down.
const DOWN: u32 = 1;

/// Number of the registers of one port among the registers of its host: the port's position in the list of the ports
/// that the host uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bank(u8);

impl Bank {
    /// Returns the offset of the port's line from that of the first port.
    fn line(self) -> usize {
        usize::from(self.0) * LINE
    }
}

/// The registers of one host, which its own processes and its neighbours' processes map.
#[derive(Clone)]
pub struct Registers {
    page: Region,
    ports: PortList,
    /// True if `membarrier` is available to this process: then its rings need no fence, unless a process of the rung
    /// host lacks it.
    expedited: bool,
}

impl Registers {
    /// Creates the registers of these ports in `page`, the first page of a host's memory, which is zero except for the
    /// header of a memory file. Panics if it is shorter than [`PAGE`].
    pub fn create(page: Region, ports: PortList) -> Registers {
        assert!(page.len() >= PAGE, "the register page is too short");
        page.register(PORTS).store(ports.code(), Ordering::Release);
        Registers { page, ports, expedited: barrier::available() }
    }

    /// Returns the registers that another process of the host or a neighbour's process has created in `page`; None if
    /// there are none. Panics if the page is shorter than [`PAGE`].
    pub fn open(page: Region) -> Option<Registers> {
        assert!(page.len() >= PAGE, "the register page is too short");
        let ports = PortList::of_code(page.register(PORTS).load(Ordering::Acquire))?;
        Some(Registers { page, ports, expedited: barrier::available() })
    }

    /// Returns the ports that the host uses.
    pub fn ports(&self) -> PortList {
        self.ports
    }

    /// Returns the number of a port's registers; None if the host does not use the port.
    pub fn bank(&self, port: PortIndex) -> Option<Bank> {
        self.ports.position(port).map(|position| Bank(position as u8))
    }

    /// Records in the page if this process lacks `membarrier`; if no process of the host lacks it, the neighbours'
    /// rings need no fence. Every process of the host must call this before it can be rung.
    pub fn attend(&self) {
        if !self.expedited {
            self.page.register(FENCED).store(1, Ordering::SeqCst);
        }
    }

    /// Returns a scratchpad of a port. Panics if `register` is not below [`SCRATCHPADS`].
    pub fn scratchpad(&self, bank: Bank, register: usize) -> &AtomicU32 {
        assert!(register < SCRATCHPADS, "no scratchpad {register}");
        self.page.register(CONTROL + bank.line() + 4 * register)
    }

    fn banks(&self) -> impl Iterator<Item = Bank> {
        (0..self.ports.ports().len()).map(|position| Bank(position as u8))
    }

    fn doorbells(&self, bank: Bank) -> &AtomicU32 {
        self.page.register(DOORBELL + bank.line())
    }

    /// Returns the number of times that the link of a port has gone down or come up. The link is initially up, so it is
    /// down if the number is odd.
    fn link_changes(&self, bank: Bank) -> &AtomicU32 {
        self.page.register(LINK + bank.line())
    }

    /// Returns the link state that a port reports.
    pub fn link(&self, bank: Bank) -> LinkState {
        match self.link_changes(bank).load(Ordering::Acquire) & DOWN {
            0 => LinkState::Up,
            _ => LinkState::Down,
        }
    }

    /// Returns the number of times that the link of a port has gone down.
    pub fn outages(&self, bank: Bank) -> u64 {
        u64::from(self.link_changes(bank).load(Ordering::Acquire).div_ceil(2))
    }

    /// Makes a port report this link state from now on. A change wakes all sleepers of the host, as the
    /// interrupt of an adapter does.
    pub fn set_link(&self, bank: Bank, state: LinkState) {
        let change =
            |changes: u32| ((changes & DOWN != 0) != (state == LinkState::Down)).then(|| changes.wrapping_add(1));
        if self.link_changes(bank).fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok() {
            (0..DOORBELLS).for_each(|vector| self.interrupt(vector));
        }
    }

    /// Returns the word of a port that holds the time since which faults are injected on its link ([`crate::fault`]),
    /// if both ends of the link use that word.
    pub fn faults_since(&self, bank: Bank) -> Region {
        self.page.part(FAULTS_SINCE + bank.line(), 8)
    }

    /// Returns the memory in which a link model keeps the meter of a port.
    pub fn meter(&self, bank: Bank) -> Region {
        self.page.part(METERS + usize::from(bank.0) * METER, METER)
    }

    fn rings(&self, vector: usize) -> &AtomicU32 {
        assert!(vector < DOORBELLS, "no vector {vector}");
        self.page.register(VECTOR + vector * LINE)
    }

    /// Returns the number of threads that have armed the vector. A process that is killed between [`SoftVector::arm`]
    /// and [`SoftVector::disarm`] stays counted. The count only decides if a ring is worth a system call, so such a job
    /// pays for one that wakes no thread whenever it raises the vector, and nothing else changes.
    fn sleepers(&self, vector: usize) -> &AtomicU32 {
        self.page.register(VECTOR + vector * LINE + 4)
    }

    /// Executes a ring from the neighbour at a port: makes the doorbell pending and raises its vector. Panics if there
    /// is no such doorbell.
    ///
    /// The ring is skipped if an earlier ring has raised the vector and no thread has armed it or cleared the doorbell
    /// since: a thread that does so later checks for work afterwards. In a busy exchange a ring therefore costs two
    /// loads (and a fence where `membarrier` is not available, see [`barrier`]).
    pub fn ring(&self, bank: Bank, doorbell: usize) {
        assert!(doorbell < DOORBELLS, "no doorbell {doorbell}");
        // Orders the deposit before the load of the raised bit; pairs with the heavy barriers in `arm` and `clear`.
        barrier::light(self.expedited && self.page.register(FENCED).load(Ordering::Relaxed) == 0);
        let bells = self.doorbells(bank);
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

    /// Returns the pending doorbells of a port, a bit each.
    pub fn pending(&self, bank: Bank) -> u16 {
        self.doorbells(bank).load(Ordering::Acquire) as u16
    }

    /// Clears the given pending doorbells of a port. A ring after the call makes its doorbell pending again.
    pub fn clear(&self, bank: Bank, bits: u16) {
        let bits = u32::from(bits);
        self.doorbells(bank).fetch_and(!(bits | bits << RAISED), Ordering::SeqCst);
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
        for bank in r.banks() {
            r.doorbells(bank).fetch_and(!(1 << self.doorbell << RAISED), Ordering::SeqCst);
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
        let registers = Registers::create(Region::anonymous(PAGE), PortList::default());
        let bank = registers.bank(PortIndex::ALL[0]).expect("the port is used");
        let vectors = [(); 2].map(|()| SoftVector::new(registers.clone(), 3));
        // The first thread is killed while the vector is armed.
        vectors[0].arm();
        for _ in 0..3 {
            let ticket = vectors[1].arm();
            assert!(!vectors[1].sleep(ticket, Duration::from_millis(1)), "nothing has rung");
            registers.ring(bank, 3);
            assert!(vectors[1].sleep(ticket, Duration::from_secs(60)));
            vectors[1].disarm();
            registers.clear(bank, 1 << 3);
            assert_eq!(registers.sleepers(3).load(Ordering::SeqCst), 1, "the count neither grows nor falls");
        }
    }
}
