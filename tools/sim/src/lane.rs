//! A lane of a simulated link: the real [`Producer`] and [`Consumer`] over ordinary memory.
//!
//! The bytes of a packet are not copied; the entry has its length and begins with the packet's number. A head that the
//! consumer returns takes effect only when the simulated transfer has ended. The rules about room exist only once: the
//! code that ranks and forwarders run decides about room, wraps, and the time at which a head is returned.

use ntbring_memory::{InWindow, OutWindow, Region};
use ntbring_queue::{entry_max, Consumer, Producer, LINE, LINES_MAX, LINES_MIN};

/// The layout of a simulation's lanes. Very large lanes, and those of very many hosts, are scaled down: each of their
/// lines represents several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    lines: usize,
    /// Number of real lines that each line represents.
    scale: usize,
}

/// Error: an impossible lane layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The lane is smaller than the minimum.
    #[error("a lane of {0} bytes is too small: it needs {LINES_MIN} lines of {LINE} bytes")]
    Small(usize),
    /// Packets do not fit in the lane.
    #[error("packets of {packet} bytes do not fit a lane of {lane}: an entry may take a quarter of it")]
    Packet {
        /// Size of a packet in bytes.
        packet: usize,
        /// Size of a lane in bytes.
        lane: usize,
    },
}

impl Layout {
    /// Returns the layout of lanes of `bytes` for packets of up to `packet` bytes. There are at most `lanes` of them,
    /// which may use `memory` bytes of this process in all.
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

    /// Returns the number of real lines that each line represents.
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
    /// The word in which the producer reads the head.
    credit: OutWindow,
    /// The word in which the consumer has written the head.
    returned: InWindow,
    /// Number of the packet that was looked at last, if it is not released yet.
    looked_at: Option<usize>,
}

impl Lane {
    /// Returns an empty lane.
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

    /// Puts a packet of that size into the lane. Returns false if there is no room according to the latest head that
    /// the producer has received.
    pub fn put(&mut self, number: usize, bytes: usize) -> bool {
        let len = self.layout.scaled(bytes);
        let Some(mut slot) = self.producer.reserve(len) else { return false };
        slot.write_bytes(0, &(number as u64).to_le_bytes());
        slot.commit(0, len, 0);
        true
    }

    /// Returns the next packet, which must have arrived.
    pub fn look(&mut self) -> Option<usize> {
        if self.looked_at.is_none() {
            // Entries of the real producer are never corrupt; if one were, its packet would be missing, which is
            // detected.
            let entry = self.consumer.take().ok().flatten()?;
            let mut number = [0; 8];
            self.consumer.window().read(entry.offset, &mut number);
            self.looked_at = Some(u64::from_le_bytes(number) as usize);
        }
        self.looked_at
    }

    /// Frees the space of the packet that was looked at. Returns the head to send to the producer, if one is due now.
    pub fn release(&mut self) -> Option<u64> {
        self.looked_at.take()?;
        self.consumer.release().then(|| self.returned.load(0))
    }

    /// Delivers a head to the producer.
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
            assert!(!lane.put(99, 600), "the producer has not received the head yet");
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
