//! What a message carries, before it is in a window.

use ntbring_memory::{ForeignBytes, OutWindow, Room};
use ntbring_queue::Slot;

/// Writes bytes of a packed payload, from `offset` on, into the room; returns how many, or None
/// if it cannot. Fewer than there is room for if an element would be cut. `context` is whatever
/// the payload was made with.
pub type PackFn = fn(context: [usize; 2], offset: u64, room: Room) -> Option<usize>;

/// The payload of a message: application memory that is read when there is room in the lane.
#[derive(Clone, Copy)]
pub enum Payload {
    /// Contiguous bytes (none is a payload too).
    Contiguous(ForeignBytes),
    /// Bytes that a function packs.
    Packed {
        /// How many there are.
        len: u64,
        /// Packs them.
        pack: PackFn,
        /// For `pack`.
        context: [usize; 2],
    },
}

/// What takes a payload.
pub trait Target {
    /// Writes bytes at `at`.
    fn write(&mut self, at: usize, bytes: ForeignBytes);
    /// Lets `pack` write up to `max` bytes at `at`; returns how many it wrote.
    fn fill(&mut self, at: usize, max: usize, pack: impl FnOnce(Room) -> usize) -> usize;
}

impl Target for Slot<'_> {
    #[inline]
    fn write(&mut self, at: usize, bytes: ForeignBytes) {
        Slot::write(self, at, bytes);
    }

    fn fill(&mut self, at: usize, max: usize, pack: impl FnOnce(Room) -> usize) -> usize {
        Slot::fill(self, at, max, pack)
    }
}

impl Target for OutWindow {
    fn write(&mut self, at: usize, bytes: ForeignBytes) {
        OutWindow::write(self, at, bytes);
    }

    fn fill(&mut self, at: usize, max: usize, pack: impl FnOnce(Room) -> usize) -> usize {
        OutWindow::fill(self, at, max, pack)
    }
}

/// Packing did not work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the payload could not be packed at byte {offset} of {len}")]
pub struct PackFailed {
    /// Where.
    pub offset: u64,
    /// Of how many bytes.
    pub len: u64,
}

impl Payload {
    /// No payload.
    pub const NONE: Payload = Payload::Contiguous(ForeignBytes::EMPTY);

    /// Bytes in all.
    #[inline]
    pub fn len(&self) -> u64 {
        match self {
            Payload::Contiguous(bytes) => bytes.len() as u64,
            Payload::Packed { len, .. } => *len,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes bytes from `offset` on to `at` in the target, `max` at the most. Returns how many: at
    /// least one, unless `max` is 0, and all that remain if they fit.
    #[inline]
    pub fn put(&self, offset: u64, target: &mut impl Target, at: usize, max: usize) -> Result<usize, PackFailed> {
        let left = self.len() - offset;
        let n = left.min(max as u64) as usize;
        match self {
            Payload::Contiguous(bytes) => {
                target.write(at, bytes.part(offset as usize, n));
                Ok(n)
            }
            Payload::Packed { pack, context, len } => {
                let failed = PackFailed { offset, len: *len };
                let mut packed = None;
                target.fill(at, n, |room| {
                    packed = pack(*context, offset, room);
                    packed.unwrap_or(0)
                });
                match packed {
                    Some(p) if p > n || (p == 0 && n > 0) || (p < n && n as u64 == left) => Err(failed),
                    Some(p) => Ok(p),
                    None => Err(failed),
                }
            }
        }
    }
}
