//! An adapter, the state of its link, and what others ask of it.

use crate::allotment::PAGE;
use crate::chip::{Aperture, Chip, Limits};
use crate::control::{BOARD, CONTROL};
use crate::error::PciError;
use crate::function::Interrupts;
use crate::ledger::Ledger;
use crate::link::{Action, Introduction, LinkSetup, SetupError, ARRIVAL, CONFIRMATION};
use crate::measure::{Answering, Area};
use crate::memory::SharedMemory;
use crate::network::Cable;
use crate::retry::Retry;
use ntbring_memory::{OutWindow, Region};
use ntbring_ntb::{LinkState, PortCaps, PortIndex};
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Smallest window, bytes, and the size from which on messages are not slowed by it.
const WINDOW_MIN: u64 = 2 * CONTROL;
const WINDOW_GOOD: u64 = 4 << 20;

/// Largest piece of scratch memory, bytes.
const SCRATCH: u64 = 2 << 20;

/// A part of the software that is told what happens at an adapter. The calls come from the thread that serves the
/// adapter; they must not block.
pub trait Listener: Send + Sync {
    /// These doorbells have rung, a bit each.
    fn doorbells(&self, bits: u32);
    /// The link has this state from now on.
    fn link(&self, state: LinkState);
}

/// One adapter of this host.
pub struct Adapter {
    pub(super) chip: Arc<dyn Chip>,
    pub(crate) limits: Limits,
    pub(crate) port: PortIndex,
    /// Identity of this host.
    pub(super) host: u64,
    /// The start of the window.
    pub(crate) page: Region,
    /// Size of the window that the neighbour writes, bytes.
    pub(super) size: u64,
    pub(crate) iova: u64,
    pub(super) interrupts: Interrupts,
    /// Bus addresses behind the window at which scratch memory lies.
    pub(super) scratch: Vec<u64>,
    pub(super) state: Mutex<State>,
    /// Held while this host measures the link.
    pub(crate) measuring: Mutex<()>,
}

/// State of the link.
pub(crate) struct State {
    /// The bring-up; None while the link is down.
    pub setup: Option<BringUp>,
    /// The neighbour, while the link is up.
    pub peer: Option<Introduction>,
    /// Time at which the link has to be looked at again, even if no interrupt tells of it.
    pub(super) look: Duration,
    /// The latest error that was logged.
    pub(super) error: Option<SetupError>,
    /// True if the adapter does not answer any more.
    pub(super) is_gone: bool,
    /// True if the kernel wants the function back.
    pub(super) is_withdrawn: bool,
    /// True if the function was absent at the latest look, with the link.
    pub(super) has_vanished: bool,
    pub(super) retry: Retry,
    pub ledger: Ledger,
    /// Offsets in the window at which further memory of slices lies, by the offsets of the slices.
    pub(super) pieces: HashMap<u64, Vec<u64>>,
    pub(super) listeners: Vec<Arc<dyn Listener>>,
    /// Number of times that the link has come up.
    pub(super) epoch: u32,
    /// The text for the neighbour's board, the number of times that it was written, and the number of the text that was
    /// taken from the own board.
    pub posted: Vec<u8>,
    pub posts: u64,
    pub taken: u64,
    pub(super) answering: Answering,
    /// Rate of writes when the link came up, bytes per second.
    pub(super) rate: u64,
}

/// A bring-up, and the part of the neighbour's window that it writes.
pub(crate) struct BringUp {
    pub(super) setup: LinkSetup,
    pub page: OutWindow,
    /// The area in which the link is measured, while it is up.
    pub(super) area: Area,
}

impl Adapter {
    /// Takes an adapter into use. The neighbour may write a window of at most `size` bytes, of which the first
    /// [`CONTROL`] are the adapter's own; the rest is divided among jobs ([`Adapter::add_slice`]). `host` is the identity
    /// of this host, a random number. From now on a thread must call [`Adapter::serve`].
    pub fn open(chip: Arc<dyn Chip>, port: PortIndex, host: u64, size: u64) -> Result<Arc<Adapter>, PciError> {
        let limits = chip.limits();
        let function = chip.function();
        let (identity, help) = (function.identity(), String::new());
        let system = |operation, source| PciError::System { identity, operation, source, help };
        let size = limits.incoming.min(size) / PAGE * PAGE;
        if size.min(limits.aperture.size) < WINDOW_MIN {
            let problem = format!(
                "its window has {} bytes, of which {size} may be used, but at least {WINDOW_MIN} are needed",
                limits.incoming.min(limits.aperture.size)
            );
            let help =
                "Set the windows to 4 MiB or more in the BIOS of both hosts (PEX 87xx: in the EEPROM), and `window` \
                        of the agent's configuration, too";
            return Err(PciError::Unusable { chip: chip.name(), identity, problem, help });
        }
        if size < WINDOW_GOOD {
            log::warn!(
                "port {port}: the window of {identity} has {size} bytes: messages flow better through {WINDOW_GOOD} and more"
            );
        }
        let (page, iova) = match limits.memory {
            Some(Aperture { bar, offset, .. }) => (function.memory(bar, offset, CONTROL)?, 0),
            None => {
                let page =
                    SharedMemory::allocate(CONTROL).map_err(|source| system("allocating memory for it", source))?;
                let iova = function.reserve_addresses(limits.incoming, limits.iova_align, limits.iova_below);
                (page, iova.ok_or(PciError::NoAddresses { identity, size: limits.incoming })?)
            }
        };
        chip.initialize()?;
        // The memory is there before the function may write it.
        page.clear();
        let page = page.region().clone();
        let mut scratch = Vec::new();
        if limits.memory.is_none() {
            function.map_memory(&page, iova)?;
            scratch = map_scratch(&*chip, iova, size)?;
        }
        let interrupts = function.interrupts(limits.vectors, limits.least_vectors)?;
        function.set_bus_master(true);
        let state = State {
            setup: None,
            peer: None,
            look: Duration::ZERO,
            error: None,
            is_gone: false,
            is_withdrawn: false,
            has_vanished: false,
            retry: Retry::default(),
            ledger: Ledger::new(size, CONTROL),
            pieces: HashMap::new(),
            listeners: Vec::new(),
            epoch: 0,
            posted: Vec::new(),
            posts: 0,
            taken: 0,
            answering: Answering::default(),
            rate: 0,
        };
        let (state, measuring) = (Mutex::new(state), Mutex::new(()));
        let adapter = Adapter { chip, limits, port, host, page, size, iova, interrupts, scratch, state, measuring };
        adapter.prepare()?;
        adapter.chip.enable_link()?;
        Ok(Arc::new(adapter))
    }

    /// Sets everything that the loss of the link may have destroyed.
    pub(super) fn prepare(&self) -> Result<(), PciError> {
        for word in [ARRIVAL, CONFIRMATION, BOARD as usize] {
            self.page.word(word).store(0, Ordering::Relaxed);
        }
        // A reset of the function, which the loss of the link is for some chips, clears the bit.
        self.chip.function().set_bus_master(true);
        self.chip.initialize()?;
        self.chip.set_translation(self.iova, self.size)?;
        self.chip.enable_interrupts(((1u64 << self.limits.doorbells) - 1) as u32);
        Ok(())
    }

    /// Returns the number of the port.
    pub fn port(&self) -> PortIndex {
        self.port
    }

    /// Returns the capabilities of ports over slices of this adapter's windows.
    pub fn caps(&self) -> PortCaps {
        let mut caps = PortCaps::SOFTWARE;
        caps.mapping = self.chip.function().mapping(self.limits.aperture.bar);
        caps.window_max = self.size.min(self.limits.aperture.size);
        caps
    }

    /// Returns the driver of the chip.
    pub fn chip(&self) -> &Arc<dyn Chip> {
        &self.chip
    }

    /// Returns true if the neighbour writes memory of the device, not of this host.
    pub fn has_own_memory(&self) -> bool {
        self.limits.memory.is_some()
    }

    /// Returns the size of the window that the neighbour writes, bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Takes the memory away that is behind the window from `offset` on, unless it is the device's.
    pub(crate) fn unmap(&self, offset: u64) {
        if self.limits.memory.is_some() {
            return;
        }
        if let Err(error) = self.chip.function().unmap_memory(self.iova + offset) {
            log::warn!("port {}: {error}", self.port);
        }
    }

    /// Returns the file that maps the neighbour's window, and the window's offset in it, bytes; None if only this
    /// process can map it.
    pub fn window_file(&self) -> Option<(BorrowedFd<'_>, u64)> {
        let aperture = self.limits.aperture;
        let (file, offset) = self.chip.function().window_file(aperture.bar)?;
        Some((file, offset + aperture.offset))
    }

    /// Returns the descriptor that becomes readable when [`Adapter::serve`] has work.
    pub fn event(&self) -> BorrowedFd<'_> {
        self.interrupts.event.as_fd()
    }

    /// Returns the neighbour; None if the link is down.
    pub fn peer(&self) -> Option<Introduction> {
        self.state().peer
    }

    /// Returns the link as this end sees it, if it is up.
    pub fn cable(&self) -> Option<Cable> {
        let state = self.state();
        let peer = state.peer?;
        let (port, peer_port) = (self.port.get(), peer.port.get());
        let (epoch, window, rate) = (state.epoch, self.size, state.rate);
        Some(Cable { port, peer: peer.host, peer_port, epoch, window, rate })
    }

    /// Returns the area in which the link is measured; None if it is down.
    pub(crate) fn area(&self) -> Option<Area> {
        let state = self.state();
        state.peer.and(state.setup.as_ref()).map(|bringing| bringing.area.clone())
    }

    /// Returns the reason for which the link is down, as text.
    pub fn why_down(&self) -> String {
        let state = self.state();
        match (state.is_gone, state.error, &state.setup) {
            (true, ..) => "the adapter does not answer".into(),
            _ if state.is_withdrawn => "the kernel asks for the adapter back: stop ntbringd to release it".into(),
            (_, Some(error @ (SetupError::NothingArrives | SetupError::NothingIsConfirmed)), _) => {
                format!("{error}. Possible causes: {}", self.chip.causes_of_silence())
            }
            (_, Some(error), _) => error.to_string(),
            (_, None, None) => "there is no link: no cable, or the neighbour is off or has not enabled its port".into(),
            (_, None, Some(_)) => "there is a link, but the neighbour's ntbringd does not answer".into(),
        }
    }

    /// Adds a listener, and tells it the present state of the link.
    pub fn listen(&self, listener: Arc<dyn Listener>) {
        let mut state = self.state();
        listener.link(if state.peer.is_some() { LinkState::Up } else { LinkState::Down });
        state.listeners.push(listener);
    }

    /// Removes a listener.
    pub fn ignore(&self, listener: &Arc<dyn Listener>) {
        self.state().listeners.retain(|other| !Arc::ptr_eq(other, listener));
    }

    pub(crate) fn aim(&self, offset: u64, len: u64) -> Result<OutWindow, PciError> {
        let aperture = self.limits.aperture;
        self.chip.function().window(aperture.bar, aperture.offset + offset, len)
    }

    /// Rings a doorbell of the neighbour.
    pub fn ring(&self, doorbell: usize) {
        self.chip.ring(doorbell);
    }

    /// Tells the neighbour that this host leaves.
    pub(super) fn leave(&self) {
        if let Action::Scratchpad { register, value } = LinkSetup::leave() {
            self.chip.set_peer_scratchpad(register, value);
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Adapter {
    /// Tells the neighbour that this host leaves, and lets it write no more.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(bringing) = state.setup.take() {
            bringing.area.end();
        }
        self.leave();
        self.chip.clear_translation();
        self.chip.disable_link();
        self.chip.function().set_bus_master(false);
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let pieces = state.pieces.drain().flat_map(|(_, pieces)| pieces);
        let places: Vec<u64> = pieces.chain(state.ledger.places()).collect();
        places.into_iter().chain([0]).for_each(|offset| self.unmap(offset));
        self.scratch.iter().for_each(|offset| self.unmap(*offset));
    }
}

/// Maps memory that nobody reads behind that part of the incoming range that is beyond the window of `size` bytes but
/// cannot be closed: the same memory again and again. Returns the offsets of the mappings from `iova`.
fn map_scratch(chip: &dyn Chip, iova: u64, size: u64) -> Result<Vec<u64>, PciError> {
    let (function, end) = (chip.function(), chip.translated(size));
    if end <= size {
        return Ok(Vec::new());
    }
    let chunk = (end - size).min(SCRATCH);
    let memory = SharedMemory::allocate(chunk).map_err(|source| {
        let (identity, operation, help) = (function.identity(), "allocating memory for it", String::new());
        PciError::System { identity, operation, source, help }
    })?;
    let map = |offset: u64| {
        let len = chunk.min(end - offset);
        function.map_memory(&memory.region().part(0, len as usize), iova + offset)?;
        Ok(offset)
    };
    (size..end).step_by(chunk as usize).map(map).collect()
}
