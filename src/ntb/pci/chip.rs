//! The interface between the drivers of chips and the adapter above them.

use crate::error::PciError;
use crate::function::Function;

/// Limits and peculiarities of a chip in its present mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of doorbells that can be rung at the other end; they are numbered from 0.
    pub doorbells: usize,
    /// Number of 32-bit scratchpads in each direction.
    pub scratchpads: usize,
    /// Number of interrupt vectors to enable.
    pub vectors: usize,
    /// Least number of vectors with which the chip can use more than one.
    pub least_vectors: usize,
    /// The memory through which this host writes the neighbour's.
    pub aperture: Aperture,
    /// Size of the range of addresses at which the neighbour's writes arrive, bytes: the translation covers at most so
    /// much.
    pub incoming: u64,
    /// The part of the device's own memory in which the neighbour's writes arrive; None: they arrive in memory of this
    /// host, behind the translation.
    pub memory: Option<Aperture>,
    /// Alignment of the bus address of incoming memory, bytes.
    pub iova_align: u64,
    /// Bound of the bus addresses of incoming memory; None: all 64 bits.
    pub iova_below: Option<u64>,
    /// True if the incoming range always has its whole size, so that memory of exactly that size must lie behind it.
    pub is_whole: bool,
}

/// A part of a memory range: that through which a host writes its neighbour's memory, or that in which the neighbour
/// writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aperture {
    /// Number of the base address register.
    pub bar: u8,
    /// Offset in the range, bytes.
    pub offset: u64,
    /// Size, bytes.
    pub size: u64,
}

/// State of a link as the chip reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkStatus {
    /// The link is up.
    Up {
        /// Generation of PCI Express, 1 to 6; 0 if the chip does not tell.
        generation: u8,
        /// Number of lanes; 0 if the chip does not tell.
        width: u8,
    },
    /// The link is down.
    Down,
}

/// Events since the previous call of [`Chip::take_events`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// Doorbells that have rung, a bit each.
    pub doorbells: u32,
    /// True if the state of the link may have changed, possibly more than once.
    pub link_changed: bool,
}

/// A driver of a family of NTB chips, for one function. It starts no thread; [`Adapter`](crate::Adapter) calls it.
///
/// Every method that reads registers returns [`PciError::Gone`] if they return all ones.
pub trait Chip: Send + Sync {
    /// Returns the name of the chip, for messages.
    fn name(&self) -> &'static str;
    /// Returns the function that the driver controls.
    fn function(&self) -> &dyn Function;
    /// Returns the limits.
    fn limits(&self) -> Limits;
    /// Brings the chip into its initial state: no doorbell interrupts, no incoming write is let through, the scratchpads
    /// that the neighbour writes are zero. Called at the start and each time the link has come up, since some chips lose
    /// their state with the link.
    fn initialize(&self) -> Result<(), PciError>;
    /// Lets the neighbour write the `size` bytes of memory of this host at `iova`, and nothing else.
    fn set_translation(&self, iova: u64, size: u64) -> Result<(), PciError>;
    /// Withdraws the translation: no incoming write is let through.
    fn clear_translation(&self);
    /// Returns the size of the incoming range that a translation of `size` bytes lets through, bytes: memory must lie behind
    /// all of it.
    fn translated(&self, size: u64) -> u64 {
        if self.limits().is_whole {
            self.limits().incoming
        } else {
            size
        }
    }
    /// Returns true if the function is absent while the link is down: it is looked for again then.
    fn vanishes(&self) -> bool {
        false
    }
    /// Changes to another way for outgoing writes. Called when writes do not arrive. Returns false if there is none.
    fn retry_outgoing(&self) -> bool {
        false
    }
    /// Enables the link. This is the only method that may wait, about a second; it is called when an adapter is opened.
    fn enable_link(&self) -> Result<(), PciError>;
    /// Disables the link, where that harms nothing but the link.
    fn disable_link(&self);
    /// Returns the state of the link.
    fn link(&self) -> Result<LinkStatus, PciError>;
    /// Enables the interrupts of these doorbells and of the link.
    fn enable_interrupts(&self, doorbells: u32);
    /// Returns and clears the events. If the chip raises an interrupt only when its first event comes, this reads until
    /// there is no event.
    fn take_events(&self) -> Result<Events, PciError>;
    /// Reads a scratchpad that the neighbour writes.
    fn scratchpad(&self, register: usize) -> Result<u32, PciError>;
    /// Writes a scratchpad that the neighbour reads.
    fn set_peer_scratchpad(&self, register: usize, value: u32);
    /// Rings a doorbell of the neighbour.
    fn ring(&self, doorbell: usize);
    /// Returns the possible causes if writes of the neighbour do not arrive although the link is up.
    fn causes_of_silence(&self) -> &'static str;
}
