//! Payloads of messages in application memory.

use ntbring_memory::{ForeignBytes, OutWindow, Room};
use ntbring_queue::Slot;

/// Packs bytes of a non-contiguous payload, from byte `offset` on, into the room. Returns the number of bytes, or
/// None on failure. It packs fewer than there is room for if an element would be split. `context` is the value stored
/// in the payload.
pub type PackFn = fn(context: [usize; 2], offset: u64, room: Room) -> Option<usize>;

/// The payload of a message: application memory that is read when there is room in the lane.
#[derive(Clone, Copy)]
pub enum Payload {
    /// Contiguous bytes; may be empty.
    Contiguous(ForeignBytes),
    /// Bytes that a function packs.
    Packed {
        /// Number of bytes.
        len: u64,
        /// Function that packs them.
        pack: PackFn,
        /// Argument for `pack`.
        context: [usize; 2],
    },
}

/// Destination of payload bytes.
pub trait Target {
    /// Writes bytes at byte offset `at`.
    fn write(&mut self, at: usize, bytes: ForeignBytes);
    /// Lets `pack` write up to `max` bytes at byte offset `at`; returns the number of bytes written.
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

/// Error: packing has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the payload could not be packed at byte {offset} of {len}")]
pub struct PackFailed {
    /// Offset in the payload at which packing failed, in bytes.
    pub offset: u64,
    /// Size of the payload in bytes.
    pub len: u64,
}

impl Payload {
    /// The empty payload.
    pub const NONE: Payload = Payload::Contiguous(ForeignBytes::EMPTY);

    /// Size in bytes.
    #[inline]
    pub fn len(&self) -> u64 {
        match self {
            Payload::Contiguous(bytes) => bytes.len() as u64,
            Payload::Packed { len, .. } => *len,
        }
    }

    /// Returns true if the payload is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes bytes from `offset` on to byte offset `at` of the target, at most `max`. Returns the number of bytes:
    /// at least one unless `max` is 0, and all that remain if they fit.
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
