//! Layout of the memory that hosts and processes share: windows, and the memory of a host's processes.
//!
//! | file | holds |
//! |---|---|
//! | `ends` | the ends of lanes, and the classes of packets |
//! | `window` | layout of a window: credits, boards, tables and lanes |
//! | `direct` | layout of the lanes behind a rank's mailbox |
//! | `local` | layout of the memory that the processes of a host share |

mod direct;
mod ends;
mod local;
mod window;

pub use direct::DirectLayout;
pub use ends::{Class, End, LANE_MIN};
pub use local::LocalLayout;
pub use window::{TooSmall, WindowLayout, BLOCKS_MAX, BOARDS};

pub(crate) use window::has_bulk;
