//! Packets that gateways and forwarder threads exchange: those that have arrived for the gateway, and those that it
//! sends.

use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Maximum number of packets that wait for the gateway. Further ones are dropped; their senders send them again.
const ARRIVED_MAX: usize = 4096;

/// A packet of a tunnel, without its route.
#[derive(Clone, Debug)]
pub(crate) struct TunnelPacket {
    /// The host at the other end.
    pub host: usize,
    pub bytes: Bytes,
}

/// Packets that have arrived by any transit channel and that the gateway has not taken yet.
#[derive(Default)]
pub(crate) struct Mail {
    arrived: Mutex<VecDeque<TunnelPacket>>,
    /// Number of entries, which is read before the lock is taken.
    count: AtomicUsize,
}

impl Mail {
    /// Adds a packet that has arrived.
    pub fn put(&self, packet: TunnelPacket) {
        let mut arrived = self.lock();
        if arrived.len() < ARRIVED_MAX {
            arrived.push_back(packet);
        }
        self.count.store(arrived.len(), Ordering::Release);
    }

    /// Removes and returns all packets.
    pub fn take(&self) -> VecDeque<TunnelPacket> {
        let mut arrived = self.lock();
        self.count.store(0, Ordering::Release);
        std::mem::take(&mut arrived)
    }

    /// Returns true if there are none. Costs one load.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<TunnelPacket>> {
        self.arrived.lock().unwrap_or_else(|e| e.into_inner())
    }
}
