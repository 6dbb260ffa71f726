//! What goes to several hosts, until there is room for it in the lanes to the forwarders on either side.

use super::{Outbound, Outbox};
use ntbring_ntb::Side;
use ntbring_ring::cast::{Cast, HostSet};
use std::collections::VecDeque;

/// Stands in the list of ranks whose flow has something waiting, for what goes to several hosts.
pub(super) const CASTS: u32 = u32::MAX;

/// What waits to leave by one side, in order.
#[derive(Default)]
struct Half {
    /// The outbox to the forwarder there.
    outbox: Option<usize>,
    waiting: VecDeque<(Cast, Vec<u8>)>,
}

/// What waits to go to several hosts.
#[derive(Default)]
pub(super) struct Casts {
    halves: [Half; 2],
}

impl Casts {
    /// Says which outbox leads to the forwarder on a side.
    pub fn goes_by(&mut self, side: Side, outbox: usize) {
        self.halves[side as usize].outbox = Some(outbox);
    }
}

impl Outbound {
    /// Forgets what is to go to several hosts by a side, and what will be.
    pub fn close_casts(&mut self, side: Side) {
        self.casts.halves[side as usize] = Half::default();
    }

    /// Sends bytes to the ranks of these hosts, of which each part is reached by its side.
    pub fn cast(&mut self, parts: [HostSet; 2], bytes: &[u8]) {
        let halves = self.casts.halves.iter_mut().zip(parts);
        for (half, hosts) in halves.filter(|(half, hosts)| half.outbox.is_some() && !hosts.is_empty()) {
            half.waiting.push_back((Cast::new(self.me, hosts), bytes.to_vec()));
        }
        self.send_casts();
    }

    /// Sends what there is room for.
    pub(super) fn send_casts(&mut self) {
        let Outbound { casts, outboxes, work, doorbells, .. } = self;
        for Half { outbox, waiting } in &mut casts.halves {
            let Some(Outbox { lane, bell, .. }) = outbox.and_then(|i| outboxes.get_mut(i)) else { continue };
            while waiting.front().is_some_and(|(cast, bytes)| cast.put(lane, bytes)) {
                waiting.pop_front();
                *doorbells += bell.ring();
            }
        }
        let left = casts.halves.iter().any(|half| !half.waiting.is_empty());
        // Whoever calls from the list has taken it out.
        work.retain(|dest| *dest != CASTS);
        if left {
            work.push_back(CASTS);
        }
    }

    /// A line on what waits, for the diagnosis of a hang.
    pub(super) fn describe_casts(&self) -> Option<String> {
        let [left, right] = [0, 1].map(|side: usize| self.casts.halves[side].waiting.len());
        (left + right > 0).then(|| format!("to several hosts: {left} packets wait to the left, {right} to the right"))
    }
}
