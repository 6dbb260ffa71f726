//! A link without threads: posted writes wait in it until the test lets them arrive, complete or in parts, in any
//! order between two fences.

use fastrand::Rng;
use ntbring_memory::{OutWindow, WriteSink};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

enum Posted {
    Bytes(usize, Vec<u8>),
    Word(usize, u64),
}

/// Writes in flight, in groups separated by fences.
#[derive(Clone)]
pub struct Link(Arc<Mutex<VecDeque<Vec<Posted>>>>);

impl Link {
    /// Makes writes to the window wait in the link.
    pub fn between(window: OutWindow) -> (OutWindow, Link) {
        let link = Link(Arc::new(Mutex::new(VecDeque::from([Vec::new()]))));
        let sink = link.clone();
        (window.with_sink(|_| Arc::new(sink)), link)
    }

    fn post(&self, posted: Posted) {
        self.0.lock().unwrap().back_mut().unwrap().push(posted);
    }

    /// Lets one of the writes that may be next arrive, or a part of it. Returns false if there is none.
    pub fn arrive(&self, memory: &OutWindow, rng: &mut Rng) -> bool {
        let mut groups = self.0.lock().unwrap();
        while groups.len() > 1 && groups[0].is_empty() {
            groups.pop_front();
        }
        if groups[0].is_empty() {
            return false;
        }
        let i = rng.usize(..groups[0].len());
        match groups[0].swap_remove(i) {
            Posted::Word(offset, value) => memory.store(offset, value),
            Posted::Bytes(offset, mut bytes) => {
                if bytes.len() > 1 && rng.bool() {
                    let rest = bytes.split_off(rng.usize(1..bytes.len()));
                    groups[0].push(Posted::Bytes(offset + bytes.len(), rest));
                }
                memory.write_bytes(offset, &bytes);
            }
        }
        true
    }

    /// Lets all writes arrive.
    pub fn drain(&self, memory: &OutWindow, rng: &mut Rng) {
        while self.arrive(memory, rng) {}
    }
}

impl WriteSink for Link {
    fn write(&self, offset: usize, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.post(Posted::Bytes(offset, bytes.to_vec()));
        }
    }
    fn store(&self, offset: usize, value: u64) {
        self.post(Posted::Word(offset, value));
    }
    fn fence(&self) {
        self.0.lock().unwrap().push_back(Vec::new());
    }
}
