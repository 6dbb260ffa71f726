//! The stops and extra messages that production leaves out, for the experiments: see
//! `settings::PaperModel` and docs/experiments.md.
//!
//! | file | holds |
//! |---|---|
//! | `send` | the buffer that a payload is copied to, headers that travel alone |
//! | `receive` | the default buffer in which everything stops |

mod receive;
mod send;

pub(super) use receive::ReceiveSide;
pub(super) use send::SendSide;

use ntbring_memory::{ForeignBytes, InWindow, OutWindow, Region};

/// The stream that joins the two entries of a message whose header travels alone. Flows never
/// number so many.
const WHOLE: u8 = 15;

/// The largest payload that stops in a default buffer.
const MOST: u64 = 1 << 30;

/// Memory of this process that bytes are copied to and from.
struct Buffer {
    to: OutWindow,
    from: InWindow,
}

impl Buffer {
    fn new(len: usize) -> Buffer {
        let region = Region::anonymous(len);
        Buffer { to: OutWindow::new(region.clone()), from: InWindow::new(region) }
    }

    fn len(&self) -> usize {
        self.from.len()
    }

    fn bytes(&self, at: usize, len: usize) -> ForeignBytes {
        self.from.foreign(at, len)
    }
}
