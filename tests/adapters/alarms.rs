//! Announcements of the kernel about an adapter: errors of the bus, and removal.

use super::*;
use ntbring_ntb::PortIndex;
use ntbring_pci::{Adapter, Alarm};
use std::time::Duration;

/// Two adapters that a cable joins, served by the test.
struct Link {
    pair: Pair,
    adapters: [Arc<Adapter>; 2],
    now: Duration,
}

impl Link {
    fn new() -> Link {
        let pair = Pair::new(Model::Skx.cable(1 << 20));
        let open = |end| Adapter::open(pair.chip(end).unwrap(), PortIndex::ALL[0], 7 + end as u64, 1 << 20).unwrap();
        let adapters = End::BOTH.map(open);
        Link { pair, adapters, now: Duration::ZERO }
    }

    /// Serves both adapters for some time. Returns true if the link was up at its end.
    fn serve(&mut self, time: Duration) -> bool {
        let end = self.now + time;
        while self.now < end {
            for adapter in &self.adapters {
                let _next = adapter.serve(self.now, 5 + self.now.as_nanos() as u64);
            }
            self.now += Duration::from_millis(10);
        }
        self.adapters.iter().all(|adapter| adapter.peer().is_some())
    }
}

#[test]
fn a_link_is_set_up_anew_after_an_error_of_the_bus() {
    let mut link = Link::new();
    assert!(link.serve(Duration::from_secs(2)));
    let epoch = link.adapters[0].cable().unwrap().epoch;
    link.pair.functions[0].announce(Alarm::Error);
    assert!(link.serve(Duration::from_secs(5)));
    assert_ne!(link.adapters[0].cable().unwrap().epoch, epoch);
}

#[test]
fn an_adapter_that_the_kernel_wants_back_is_not_used_any_more() {
    let mut link = Link::new();
    assert!(link.serve(Duration::from_secs(2)));
    link.pair.functions[1].announce(Alarm::Removal);
    assert!(!link.serve(Duration::from_secs(5)));
    let why = link.adapters[1].why_down();
    assert!(why.contains("stop ntbringd to release it"), "{why}");
    assert!(link.adapters[0].peer().is_none(), "the neighbour knows that it has left");
}
