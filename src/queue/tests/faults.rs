//! Faults of a sender. Each one modifies correct writes on their way out, so that production code runs and every
//! error that the other tests find is caused by the fault alone.

use ntbring_memory::{OutWindow, WriteSink};
use std::sync::{Arc, Mutex};

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The tag is stored before the bytes that it makes valid.
    TagFirst,
    /// The word after an entry is not cleared.
    KeepStale,
    /// The word is cleared, but only after the entry has become valid.
    LateClear,
    /// Fences are omitted, so that the tag may overtake the bytes.
    Unfenced,
    /// The consumer returns a head beyond the entries that it has taken.
    EarlyHead,
}

impl Fault {
    #[cfg(not(loom))]
    pub const ALL: [Fault; 5] =
        [Fault::TagFirst, Fault::KeepStale, Fault::LateClear, Fault::Unfenced, Fault::EarlyHead];

    /// Puts the fault into the windows to which the producer and the consumer write.
    pub fn inject(fault: Option<Fault>, lane: OutWindow, credit: OutWindow) -> (OutWindow, OutWindow) {
        let wrap = |window: OutWindow, fault| window.with_sink(|plain| Arc::new(Faulty::new(plain, fault)));
        match fault {
            None => (lane, credit),
            Some(Fault::EarlyHead) => (lane, wrap(credit, Fault::EarlyHead)),
            Some(fault) => (wrap(lane, fault), credit),
        }
    }
}

struct Faulty {
    plain: OutWindow,
    fault: Fault,
    late: Mutex<Late>,
}

#[derive(Default)]
struct Late {
    writes: Vec<(usize, Vec<u8>)>,
    tagged: bool,
}

impl Faulty {
    fn new(plain: OutWindow, fault: Fault) -> Faulty {
        Faulty { plain, fault, late: Mutex::default() }
    }
}

impl WriteSink for Faulty {
    fn write(&self, offset: usize, bytes: &[u8]) {
        match self.fault {
            Fault::TagFirst => self.late.lock().unwrap().writes.push((offset, bytes.to_vec())),
            _ => self.plain.write_bytes(offset, bytes),
        }
    }

    fn store(&self, offset: usize, value: u64) {
        match (self.fault, value) {
            (Fault::KeepStale, 0) => {}
            (Fault::LateClear, 0) => self.late.lock().unwrap().writes.push((offset, vec![0; 8])),
            (Fault::Unfenced, _) => self.plain.write_bytes(offset, &value.to_le_bytes()),
            (Fault::EarlyHead, _) => self.plain.store(offset, value + 2),
            _ => {
                self.plain.store(offset, value);
                self.late.lock().unwrap().tagged = true;
            }
        }
    }

    fn fence(&self) {
        if self.fault == Fault::Unfenced {
            return;
        }
        self.plain.fence();
        let late = {
            let mut late = self.late.lock().unwrap();
            if std::mem::take(&mut late.tagged) {
                std::mem::take(&mut late.writes)
            } else {
                Vec::new()
            }
        };
        for (offset, bytes) in &late {
            self.plain.write_bytes(*offset, bytes);
        }
        self.plain.fence();
    }
}
