//! The global and static objects of the program as symmetric memory.
//!
//! The writable data of the executable are replaced by shared memory with the same contents, at the same addresses; other
//! PEs map that memory and access the objects as they access the heap. Objects of shared libraries are not symmetric, as
//! the specification says.

// Unit tests do not register the handlers.
#[cfg_attr(test, allow(dead_code))]
mod fork;
mod layout;

pub use fork::keep_private_in_children;
#[cfg(not(test))]
pub use fork::register_fork_handlers;
pub use layout::{Globals, PAGE};
