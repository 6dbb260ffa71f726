//! Checked access to shared memory, which another process or another host may write at any time.
//!
//! | type | is |
//! |---|---|
//! | [`Region`] | a range of mapped memory together with the owner of the mapping |
//! | [`InWindow`] | memory of this host that a neighbour writes: it can be read |
//! | [`OutWindow`] | memory of a neighbour: it can be written and never read |
//! | [`Mapping`] | the kind of a mapping, which decides the fences it needs |
//! | [`Word`] | one word of a region, as an atomic |
//! | [`CopyEngine`] | a device that copies into an outgoing window |
//! | [`ForeignBytes`], [`ForeignRoom`] | the application's buffers: source and destination of copies |
//!
//! The rule of this crate: shared memory is never turned into a Rust reference. Every access is checked against the
//! region's length and goes through a raw pointer or an atomic. A buffer in a window borrows the window, so it cannot
//! outlive the mapping; a buffer of the application is made by an unsafe function. Under `--cfg loom` a region is an
//! array of loom's atomics, so that the unchanged code above it can be model-checked.
//!
//! **Concurrent writes.** Words (tags, heads, credits) are atomics. Bytes are read after the word that announces them
//! was loaded with acquire ordering, so a peer that keeps to the protocol never writes them meanwhile. A peer that
//! breaks it may. For that case [`InWindow::read`], which fetches headers to be checked, uses volatile loads up to 64
//! bytes: the checked value is the one that is used. Larger copies, and copies into the application's buffers, whose
//! bytes are never interpreted here, are `memmove`. The language has no stable byte-wise atomic copy yet, and a loop of
//! volatile words would not be vectorised. vm-memory decides in the same way (volatile up to one word, `memcpy`
//! beyond), and so does crossbeam's `AtomicCell` for its optimistic read (volatile): strictly, the language leaves such
//! a race undefined. Its effect is confined here, since `memmove` is an opaque call on raw pointers from which the
//! compiler concludes nothing about the bytes: they are unspecified, and no check was made on them.

mod bytes;
mod copy;
mod mapping;
mod region;
mod window;
pub use bytes::{Address, ForeignBytes, ForeignRoom, Room};
pub use copy::{CopyEngine, CopySource, CopyTicket};
pub use mapping::Mapping;
pub use region::Region;
pub use window::{InWindow, OutWindow, ReadGate, WriteSink};

#[cfg(not(loom))]
mod deposit;
#[cfg(not(loom))]
mod word;
#[cfg(not(loom))]
pub use window::DeviceMemory;
#[cfg(not(loom))]
pub use word::Word;
