//! Checked access to shared memory, which another process or another host may write at any time.
//!
//! | type | is |
//! |---|---|
//! | [`Region`] | a range of mapped memory together with the owner of the mapping |
//! | [`InWindow`] | memory of this host that a neighbour writes: it can be read |
//! | [`OutWindow`] | memory of a neighbour: it can be written and never read |
//! | [`Mapping`] | the kind of a mapping, which decides the fences it needs |
//! | [`Word`] | one word of a region, as an atomic |
//! | [`ForeignBytes`], [`ForeignRoom`] | the application's buffers: source and destination of copies |
//!
//! The rule of this crate: shared memory is never turned into a Rust reference. Every access is checked against the
//! region's length and goes through a raw pointer or an atomic. Under `--cfg loom` a region is an array of loom's
//! atomics, so that the unchanged code above it can be model-checked.

mod bytes;
mod mapping;
mod region;
mod window;
pub use bytes::{Address, ForeignBytes, ForeignRoom, Room};
pub use mapping::Mapping;
pub use region::Region;
pub use window::{InWindow, OutWindow, ReadGate, WriteSink};

#[cfg(not(loom))]
mod deposit;
#[cfg(not(loom))]
mod word;
#[cfg(not(loom))]
pub use word::Word;
