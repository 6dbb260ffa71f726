//! The tables of keep-alives and obituaries, and requests for notifications.

use crate::script::Script;
use ntbring_memory::{InWindow, OutWindow, Region};
use ntbring_ntb::notice::{Echo, Notices, Tables, STATE, TABLE};
use ntbring_ntb::{Side, DOORBELLS};

/// Runs one input.
pub fn run(data: &[u8]) {
    ntbring_ring::fuzzing::liveness(data);
    let mut script = Script(data);
    let [incoming, outgoing] = [(); 2].map(|()| Region::anonymous(TABLE));
    let hostile = OutWindow::new(incoming.clone());
    let tables = Tables::new(InWindow::new(incoming), OutWindow::new(outgoing));
    let notices = Notices::new(Region::anonymous(STATE), [tables.clone(), tables]);
    let mut echo = Echo::default();
    while !script.is_over() {
        hostile.store(8 * usize::from(script.byte()) % TABLE, script.pick(&[0, 1, 2, 1 << 32, u64::MAX]));
        if script.byte() < 100 {
            hostile.store(8 * usize::from(script.byte()) % TABLE, script.word());
        }
        notices.set_absent(Side::Left, script.byte() < 50);
        let rings = std::cell::Cell::new(0);
        echo.step(&notices, Side::Left, |doorbell| {
            assert!(doorbell < DOORBELLS);
            rings.set(rings.get() + 1);
        });
        assert!(rings.get() <= DOORBELLS);
    }
}
