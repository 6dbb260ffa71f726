//! The symmetric heap: which parts of it are allocated. Its book-keeping lies outside of it, so no stray put can damage
//! it, and it is the same at all PEs, since allocation is collective.

mod allocator;

pub use allocator::Allocator;
