//! A decorator for windows of devices with a largest transfer size, such as the size of the DMA engine's buffer: longer
//! writes are split.

use ntbring_memory::{OutWindow, WriteSink};
use std::sync::Arc;

/// Returns the same window, whose writes are split into transfers of at most `max` bytes. Panics if `max` is 0.
pub fn split(window: OutWindow, max: usize) -> OutWindow {
    assert!(max > 0, "a device that takes nothing");
    window.with_sink(|plain| Arc::new(Sink { plain, max }))
}

struct Sink {
    plain: OutWindow,
    max: usize,
}

impl WriteSink for Sink {
    fn write(&self, offset: usize, bytes: &[u8]) {
        for (i, part) in bytes.chunks(self.max).enumerate() {
            self.plain.write_bytes(offset + i * self.max, part);
        }
    }

    fn store(&self, offset: usize, value: u64) {
        self.plain.store(offset, value);
    }

    fn fence(&self) {
        self.plain.fence();
    }

    fn let_through(&self, offset: usize, len: usize) -> bool {
        len <= self.max && self.plain.lets_through(offset, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ntbring_memory::{InWindow, Region};
    use std::sync::Mutex;

    /// Records the offset and the length of every write.
    struct Device(OutWindow, Arc<Mutex<Vec<(usize, usize)>>>);

    impl WriteSink for Device {
        fn write(&self, offset: usize, bytes: &[u8]) {
            self.1.lock().unwrap().push((offset, bytes.len()));
            self.0.write_bytes(offset, bytes);
        }
        fn store(&self, offset: usize, value: u64) {
            self.0.store(offset, value);
        }
        fn fence(&self) {
            self.0.fence();
        }
    }

    #[test]
    fn no_transfer_is_longer_and_all_bytes_arrive() {
        for (max, len) in [(64, 1000), (100, 100), (7, 50), (1000, 999)] {
            let (memory, seen) = (Region::anonymous(4096), Arc::new(Mutex::new(Vec::new())));
            let device = OutWindow::new(memory.clone()).with_sink(|plain| Arc::new(Device(plain, seen.clone())));
            let window = split(device, max).part(512, 2048);
            let bytes: Vec<u8> = (0..len).map(|i| i as u8).collect();
            window.write_bytes(8, &bytes);
            let filled = window.fill(1024, len, |room| {
                // SAFETY: the room has `len` bytes, as `bytes` has, and does not overlap with them.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), room.address(), len) };
                len
            });
            assert_eq!(filled, len);
            let mut back = vec![0; len];
            for at in [8, 1024] {
                InWindow::new(memory.clone()).read(512 + at, &mut back);
                assert_eq!(back, bytes);
            }
            let seen = seen.lock().unwrap();
            assert!(seen.iter().all(|&(_, n)| n <= max), "{seen:?}");
            assert_eq!(seen.len(), 2 * len.div_ceil(max));
        }
    }

    #[test]
    fn what_is_short_is_written_in_place() {
        let memory = Region::anonymous(4096);
        let window = split(OutWindow::new(memory.clone()), 64);
        window.store(0, 7);
        window.write_bytes(8, b"short");
        let mut back = [0; 5];
        InWindow::new(memory.clone()).read(8, &mut back);
        assert_eq!((InWindow::new(memory).load(0), &back), (7, b"short"));
        assert!(window.lets_through(0, 64) && !window.lets_through(0, 65));
    }
}
