//! ivshmem (1AF4:1110): memory that two virtual machines share, as a link between them.
//!
//! A server of the machines' host joins the peers of a memory and passes interrupts between them. There are no
//! scratchpads, no state of a link and no translation, so all of these are words of the memory (`layout`): each host has
//! one half, which it claims (`claim`) and into which only its neighbour writes. A window is a part of the device's
//! memory, not memory of the host, and so the neighbour can always write it.
//!
//! The link is up while the neighbour's beat goes on. It tells its id with its presence: a machine that starts again has
//! another one.

mod claim;
mod layout;

use crate::chip::{Aperture, Chip, Events, Limits, LinkStatus};
use crate::driver::Driven;
use crate::error::PciError;
use crate::function::Function;
use claim::{Claim, ClaimError};
use layout::*;
use ntbring_memory::{OutWindow, Region};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const NAME: &str = "ivshmem";
const SCRATCHPADS: usize = 8;
const DOORBELLS: usize = 16;

/// Time after which a neighbour whose beat stands still counts as gone. Its agent beats ten times a second, unless its
/// machine is paused or gets no processor.
const SILENCE: Duration = Duration::from_secs(6);

const NEEDS_SERVER: &str =
    "Give the machine `-device ivshmem-doorbell,vectors=1,chardev=ID` with a socket of an ivshmem \
                            server (docs/virtual-machines.md): without one, no machine can interrupt the other";
const TOO_SMALL: &str = "Start the ivshmem server with a larger memory, a power of two";
const OLD: &str = "Use QEMU 2.6 or later";
const FOREIGN: &str = "Give the cable a memory of its own, and restart its server with it";
const TWO_PEERS: &str = "Each cable of a ring needs a server of its own, which joins two machines";
const REPLACED: &str = "Restart ntbringd on this host";

/// The driver of one function.
pub struct Ivshmem {
    device: Driven,
    claim: Claim,
    /// Size of the memory, bytes.
    size: u64,
    /// This host's id, and a random number of this driver.
    presence: Presence,
    is_enabled: AtomicBool,
    /// The words that the neighbour writes.
    own: Region,
    /// The words that the neighbour reads.
    theirs: OutWindow,
    /// Numbers of doorbells that were rung at the neighbour. They begin anywhere, so that each is new to the neighbour.
    rung: [AtomicU64; DOORBELLS],
    beat: AtomicU64,
    seen: Mutex<Seen>,
}

/// A driver that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Presence {
    id: u16,
    number: u32,
}

impl Presence {
    fn encode(self) -> u64 {
        u64::from(self.number) << 32 | u64::from(self.id) << 1 | 1
    }

    /// Returns None if the word says that no driver is there, or nothing valid.
    fn decode(word: u64) -> Option<Presence> {
        let id = u16::try_from((word as u32) >> 1).ok()?;
        (word & 1 == 1).then_some(Presence { id, number: (word >> 32) as u32 })
    }
}

/// The neighbour's words when they were last looked at.
struct Seen {
    presence: u64,
    beat: u64,
    /// Time at which one of these has last changed; None before the first change: the words may be old.
    changed: Option<Instant>,
    /// True if the presence has changed since the events were last taken.
    has_news: bool,
    rings: [u64; DOORBELLS],
}

/// Returns the driver of a function, which has claimed a half of its memory. Fails if it has no interrupts or too little
/// memory, or if two other machines share the memory. Waits some seconds if both halves have an owner.
pub fn ivshmem(function: Arc<dyn Function>) -> Result<Arc<dyn Chip>, PciError> {
    let device = Driven { name: NAME, function, proof: IV_POSITION };
    device.check()?;
    if device.function.identity().revision == 0 {
        return Err(device.unusable("it has revision 0, that of QEMU before 2.6", OLD));
    }
    if device.capability(MSIX).is_none() {
        return Err(device.unusable("it is an ivshmem-plain device, which has no interrupts (MSI-X)", NEEDS_SERVER));
    }
    let size = device.function.bar(MEMORY).filter(|_| device.function.bar(0).is_some()).map_or(0, |bar| bar.size);
    if size < MEMORY_MIN {
        let problem = format!("its shared memory (BAR 2) has {size} bytes, and at least {MEMORY_MIN} are needed");
        return Err(device.unusable(problem, TOO_SMALL));
    }
    let id = match device.registers().read32(IV_POSITION) {
        u32::MAX => return Err(device.gone()),
        id => id as u16,
    };
    let presence = Presence { id, number: fastrand::u32(..) };
    let claims = device.function.memory(MEMORY, 0, WORDS)?;
    let claim = Claim::take(claims.region().clone(), id, presence.number, SILENCE);
    let claim = claim.map_err(|error| match error {
        ClaimError::Foreign => device.unusable("its shared memory holds data of another program", FOREIGN),
        ClaimError::Taken([one, other]) => {
            let problem = format!("the peers {one} and {other} share the memory already, and this host is peer {id}");
            device.unusable(problem, TWO_PEERS)
        }
    })?;
    let own = device.function.memory(MEMORY, words(size, claim.side), WORDS)?.region().clone();
    let theirs = device.function.window(MEMORY, words(size, 1 - claim.side), WORDS)?;
    let load = |at: usize| own.word(at).load(Ordering::Acquire);
    let seen = Seen {
        presence: load(PRESENCE),
        beat: load(BEAT),
        changed: None,
        has_news: false,
        rings: std::array::from_fn(|doorbell| load(RINGS + 8 * doorbell)),
    };
    Ok(Arc::new(Ivshmem {
        claim,
        size,
        presence,
        is_enabled: AtomicBool::new(false),
        theirs,
        rung: std::array::from_fn(|_| AtomicU64::new(fastrand::u64(..))),
        beat: AtomicU64::new(fastrand::u64(..)),
        seen: Mutex::new(seen),
        own,
        device,
    }))
}

impl Ivshmem {
    /// Writes a word that the neighbour reads.
    fn write(&self, offset: usize, value: u64) {
        self.theirs.store(offset, value);
        self.theirs.fence();
    }

    /// Shows the neighbour and later peers that this host is there.
    fn show_life(&self) {
        self.claim.beat();
        self.write(BEAT, self.beat.fetch_add(1, Ordering::Relaxed));
    }

    /// Tells the neighbour whether this host is there.
    fn announce(&self, is_enabled: bool) {
        self.is_enabled.store(is_enabled, Ordering::Release);
        self.write(PRESENCE, if is_enabled { self.presence.encode() } else { 0 });
        self.show_life();
        self.interrupt();
    }

    /// Interrupts the neighbour, if it is there. An interrupt of a peer that is not there does nothing.
    fn interrupt(&self) {
        if let Some(neighbour) = Presence::decode(self.own.word(PRESENCE).load(Ordering::Acquire)) {
            self.device.registers().write32(DOORBELL, u32::from(neighbour.id) << 16);
        }
    }

    /// Looks at the neighbour's presence and beat.
    fn look(&self) -> MutexGuard<'_, Seen> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let [presence, beat] = [PRESENCE, BEAT].map(|at| self.own.word(at).load(Ordering::Acquire));
        if (presence, beat) != (seen.presence, seen.beat) {
            seen.changed = Some(Instant::now());
        }
        seen.has_news |= presence != seen.presence;
        (seen.presence, seen.beat) = (presence, beat);
        seen
    }
}

impl Chip for Ivshmem {
    fn name(&self) -> &'static str {
        NAME
    }

    fn function(&self) -> &dyn Function {
        &*self.device.function
    }

    fn limits(&self) -> Limits {
        let [own, theirs]: [Aperture; 2] = [self.claim.side, 1 - self.claim.side].map(|side| window(self.size, side));
        Limits {
            doorbells: DOORBELLS,
            scratchpads: SCRATCHPADS,
            vectors: 1,
            least_vectors: 1,
            aperture: theirs,
            incoming: own.size,
            memory: Some(own),
            iova_align: 4096,
            iova_below: None,
            is_whole: false,
        }
    }

    fn initialize(&self) -> Result<(), PciError> {
        self.device.check()?;
        (0..SCRATCHPADS).for_each(|register| self.own.word(SCRATCHPAD + 8 * register).store(0, Ordering::Release));
        Ok(())
    }

    /// Does nothing: the neighbour can always write the memory.
    fn set_translation(&self, _iova: u64, size: u64) -> Result<(), PciError> {
        assert!(size <= self.limits().incoming, "a window of {size} bytes");
        Ok(())
    }

    /// Does nothing: the neighbour can always write the memory.
    fn clear_translation(&self) {}

    fn enable_link(&self) -> Result<(), PciError> {
        self.device.check()?;
        self.announce(true);
        Ok(())
    }

    fn disable_link(&self) {
        if self.claim.is_held() {
            self.announce(false);
        }
    }

    fn link(&self) -> Result<LinkStatus, PciError> {
        self.device.check()?;
        if !self.claim.is_held() {
            let problem = "another machine has taken over this host's half of the shared memory, because this one was \
                           silent for some seconds";
            return Err(self.device.unusable(problem, REPLACED));
        }
        if self.is_enabled.load(Ordering::Acquire) {
            self.show_life();
        }
        let seen = self.look();
        let lives = seen.changed.is_some_and(|changed| changed.elapsed() < SILENCE);
        let is_up = lives && Presence::decode(seen.presence).is_some() && self.is_enabled.load(Ordering::Acquire);
        Ok(if is_up { LinkStatus::Up { generation: 0, width: 0 } } else { LinkStatus::Down })
    }

    /// Does nothing: the vector cannot be masked, and a mask of single doorbells is not needed.
    fn enable_interrupts(&self, _doorbells: u32) {}

    fn take_events(&self) -> Result<Events, PciError> {
        self.device.check()?;
        let mut seen = self.look();
        let mut doorbells = 0;
        for (doorbell, former) in seen.rings.iter_mut().enumerate() {
            let rings = self.own.word(RINGS + 8 * doorbell).load(Ordering::Acquire);
            doorbells |= u32::from(std::mem::replace(former, rings) != rings) << doorbell;
        }
        Ok(Events { doorbells, link_changed: std::mem::take(&mut seen.has_news) })
    }

    fn scratchpad(&self, register: usize) -> Result<u32, PciError> {
        assert!(register < SCRATCHPADS, "no scratchpad {register}");
        self.device.check()?;
        Ok(self.own.word(SCRATCHPAD + 8 * register).load(Ordering::Acquire) as u32)
    }

    fn set_peer_scratchpad(&self, register: usize, value: u32) {
        assert!(register < SCRATCHPADS, "no scratchpad {register}");
        self.write(SCRATCHPAD + 8 * register, value.into());
    }

    fn ring(&self, doorbell: usize) {
        assert!(doorbell < DOORBELLS, "no doorbell {doorbell}");
        self.write(RINGS + 8 * doorbell, self.rung[doorbell].fetch_add(1, Ordering::Relaxed));
        self.interrupt();
    }

    fn causes_of_silence(&self) -> &'static str {
        "the two machines do not share one memory (their ivshmem servers differ, or a server was restarted while a \
         machine ran); the neighbour's machine is paused"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_presence_is_encoded_without_loss() {
        for presence in [Presence { id: 0, number: 0 }, Presence { id: u16::MAX, number: u32::MAX }] {
            assert_eq!(Presence::decode(presence.encode()), Some(presence));
        }
        assert_eq!([0, 2, 1 << 17 | 1, 1 << 31 | 1].map(Presence::decode), [None; 4]);
    }
}
