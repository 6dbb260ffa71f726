//! A lane of a simulated link: the real [`Producer`] and [`Consumer`] over ordinary memory.
//!
//! The bytes of a packet are not copied; the entry has its length and begins with the packet's number. What the consumer
//! returns as its head is held back until its time has come. Of all rules about room there is no second version here: what
//! fits, what wraps, when a head goes back is decided by the code that ranks and forwarders run.

use ntbring_memory::{InWindow, OutWindow, Region};
use ntbring_queue::{entry_max, Consumer, Producer, LINE, LINES_MAX, LINES_MIN};

/// The layout of a simulation's lanes. Lanes of more lines than there may be, and those of very many hosts, stand for larger
/// ones: each of their lines for several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    lines: usize,
    /// Lines that each line stands for.
    scale: usize,
}

/// Lanes that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Less than a lane must have.
    #[error("a lane of {0} bytes is too small: it needs {LINES_MIN} lines of {LINE} bytes")]
    Small(usize),
    /// Packets do not fit.
    #[error("packets of {packet} bytes do not fit a lane of {lane}: an entry may take a quarter of it")]
    Packet {
        /// Bytes of a packet.
        packet: usize,
        /// Bytes of a lane.
        lane: usize,
    },
}

impl Layout {
    /// Lanes of so many bytes for packets of up to `packet` bytes, of which there are at most `lanes`, which may take
    /// `memory` bytes of this process in all.
    pub fn new(bytes: usize, packet: usize, lanes: usize, memory: usize) -> Result<Layout, LayoutError> {
        let mut scale = 1;
        while bytes / LINE / scale > LINES_MAX || bytes / scale * lanes > memory && bytes / LINE / scale / 2 >= 64 {
            scale *= 2;
        }
        let lines = bytes / LINE / scale;
        let layout = Layout { lines, scale };
        match () {
            _ if lines < LINES_MIN => Err(LayoutError::Small(bytes)),
            _ if layout.scaled(packet) > entry_max(lines) => Err(LayoutError::Packet { packet, lane: bytes }),
            _ => Ok(layout),
        }
    }

    /// Lines that each line stands for.
    pub fn scale(&self) -> usize {
        self.scale
    }

    fn scaled(&self, bytes: usize) -> usize {
        bytes.div_ceil(self.scale).max(8)
    }
}

/// One lane.
pub struct Lane {
    layout: Layout,
    producer: Producer,
    consumer: Consumer,
    /// Where the producer looks for the head.
    credit: OutWindow,
    /// Where the consumer has written it.
    returned: InWindow,
    /// The packet that was looked at last and not taken away.
    looked_at: Option<usize>,
}

impl Lane {
    /// An empty one.
    pub fn new(layout: Layout) -> Lane {
        let [lane, credit, returned] = [layout.lines * LINE, 8, 8].map(Region::anonymous);
        Lane {
            layout,
            producer: Producer::new(OutWindow::new(lane.clone()), InWindow::new(credit.clone())),
            consumer: Consumer::new(InWindow::new(lane), OutWindow::new(returned.clone())),
            credit: OutWindow::new(credit),
            returned: InWindow::new(returned),
            looked_at: None,
        }
    }

    /// Puts a packet of so many bytes into it; false if there is no room, as far as the producer has been told.
    pub fn put(&mut self, number: usize, bytes: usize) -> bool {
        let len = self.layout.scaled(bytes);
        let Some(mut slot) = self.producer.reserve(len) else { return false };
        slot.write_bytes(0, &(number as u64).to_le_bytes());
        slot.commit(0, len, 0);
        true
    }

    /// The packet that is next. It must have arrived.
    pub fn look(&mut self) -> Option<usize> {
        if self.looked_at.is_none() {
            // What the real producer has written is never corrupt; if it were, the packet would be missing, which is seen.
            let entry = self.consumer.take().ok().flatten()?;
            let mut number = [0; 8];
            self.consumer.window().read(entry.offset, &mut number);
            self.looked_at = Some(u64::from_le_bytes(number) as usize);
        }
        self.looked_at
    }

    /// Gives the space of the packet that was looked at back. Returns the head that goes to the producer, if one does now.
    pub fn release(&mut self) -> Option<u64> {
        self.looked_at.take()?;
        self.consumer.release().then(|| self.returned.load(0))
    }

    /// A head has come to the producer.
    pub fn head_arrives(&mut self, head: u64) {
        self.credit.store(0, head);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_comes_back_with_the_head_and_not_before() {
        let layout = Layout::new(64 * LINE, 600, 1, 1 << 20).unwrap();
        let mut lane = Lane::new(layout);
        let sent = (0..).take_while(|number| lane.put(*number, 600)).count();
        let mut heads = Vec::new();
        for number in 0..sent {
            assert_eq!((lane.look(), lane.look()), (Some(number), Some(number)));
            heads.extend(lane.release());
            assert!(!lane.put(99, 600), "nobody has told the producer yet");
        }
        assert_eq!((lane.look(), heads.len()), (None, 1), "once in half a lane");
        lane.head_arrives(heads[0]);
        assert!(lane.put(sent, 600));
        assert_eq!(lane.look(), Some(sent));
    }

    #[test]
    fn large_lanes_are_scaled_and_impossible_ones_refused() {
        assert_eq!(Layout::new(8 << 20, (1 << 20) + 64, 1, 1 << 30).unwrap().scale(), 8);
        assert_eq!(Layout::new(192 << 10, 8208, 8192, 256 << 20).unwrap().scale(), 8);
        assert_eq!(Layout::new(500, 8, 1, 1 << 20), Err(LayoutError::Small(500)));
        let error = LayoutError::Packet { packet: 5000, lane: 16 << 10 };
        assert_eq!(Layout::new(16 << 10, 5000, 1, 1 << 20), Err(error));
    }
}
