//! A decorator for devices with fewer doorbells or interrupt vectors than the protocol uses: several doorbells of the
//! protocol share one of the device.
//!
//! Doorbell `d` of the protocol is doorbell `d % n` of the device, where `n` is the number that both ends of the link
//! have. A ring therefore wakes every thread that sleeps on a doorbell with the same remainder; each of them looks for
//! work and sleeps again if there is none.

use crate::delegate::left_to_inner;
use crate::{NtbError, Port, PortCaps, Vector, DOORBELLS};
use ntbring_memory::OutWindow;
use std::sync::Arc;

/// A port with [`DOORBELLS`] doorbells over one with fewer.
pub struct Demux {
    inner: Arc<dyn Port>,
    /// Number of doorbells of the device that are used.
    shared: usize,
}

impl Demux {
    /// Returns the port with all doorbells; it uses the first `shared` doorbells of `inner`. Panics if that is 0.
    pub fn port(inner: Arc<dyn Port>, shared: usize) -> Arc<dyn Port> {
        assert!(shared > 0, "a device without doorbells");
        match shared {
            DOORBELLS.. => inner,
            _ => Arc::new(Demux { inner, shared }),
        }
    }

    /// Returns the bits of the protocol's doorbells that share one doorbell of the device.
    fn bits_of(&self, doorbell: usize) -> u16 {
        (doorbell..DOORBELLS).step_by(self.shared).fold(0, |bits, bell| bits | 1 << bell)
    }
}

impl Port for Demux {
    left_to_inner! {
        index shortcuts incoming segment incoming_offset scratchpad peer_scratchpad link outages descriptors lose_rather_than_wait
    }

    fn caps(&self) -> PortCaps {
        PortCaps { doorbells: DOORBELLS, ..self.inner.caps() }
    }

    fn outgoing(&self, offset: u64, len: u64) -> Result<OutWindow, NtbError> {
        self.inner.outgoing(offset, len)
    }

    fn ring(&self, doorbell: usize) {
        self.inner.ring(doorbell % self.shared);
    }

    /// Returns a bit for each doorbell whose doorbell of the device has rung.
    fn doorbells(&self) -> u16 {
        let rung = self.inner.doorbells();
        (0..self.shared).filter(|bell| rung >> bell & 1 != 0).fold(0, |bits, bell| bits | self.bits_of(bell))
    }

    /// Clears the doorbells, and with them those that share a doorbell of the device with them.
    fn clear_doorbells(&self, bits: u16) {
        let shared = (0..self.shared).filter(|&bell| bits & self.bits_of(bell) != 0);
        self.inner.clear_doorbells(shared.fold(0, |bits, bell| bits | 1 << bell));
    }

    fn vector(&self, doorbell: usize) -> Arc<dyn Vector> {
        self.inner.vector(doorbell % self.shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loopback::LoopbackHost;
    use crate::PortIndex;
    use std::time::Duration;

    #[test]
    fn every_doorbell_arrives_by_as_few_as_there_are() {
        for shared in [1, 2, 5, DOORBELLS] {
            let hosts = [LoopbackHost::new(4096), LoopbackHost::new(4096)];
            let [left, right, ..] = PortIndex::ALL;
            let port = |host: usize, own, opposite| {
                Demux::port(Arc::new(hosts[host].port(own, (&hosts[1 - host], opposite)).unwrap()), shared)
            };
            let (from, to) = (port(0, right, left), port(1, left, right));
            for bell in 0..DOORBELLS {
                let ticket = to.vector(bell).arm();
                from.ring(bell);
                assert!(to.vector(bell).sleep(ticket, Duration::from_secs(10)), "doorbell {bell} of {shared}");
                to.vector(bell).disarm();
                assert!(to.wait(bell, Duration::ZERO));
                assert_eq!(to.doorbells(), 0);
            }
        }
    }
}
