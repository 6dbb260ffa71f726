//! A link that loses every tenth write: the decorator of faults around a port.
//!
//!     cargo run --example fault

use ntbring_ntb::fault::{Faults, Faulty, Injector, Place};
use ntbring_ntb::loopback::LoopbackHost;
use ntbring_ntb::{Port, PortIndex, Side};
use std::sync::atomic::Ordering;

/// Bytes of each window.
const WINDOW: u64 = 64 << 10;
/// Words that are written.
const WORDS: usize = 1000;

/// Runs the example.
pub fn main() {
    let hosts = [LoopbackHost::new(WINDOW as usize), LoopbackHost::new(WINDOW as usize)];
    // Port 0 of each host is its left one, and port 1 its right one.
    let [left, right, ..] = PortIndex::ALL;
    let from = hosts[0].port(right, (&hosts[1], left)).expect("both hosts use ports 0 and 1");
    let to = hosts[1].port(left, (&hosts[0], right)).expect("both hosts use ports 0 and 1");
    let faults = Faults::parse("drop=0.1,seed=1").expect("docs/faults.md").expect("there are faults");
    let place = Place { host: 0, process: 0, neighbours: [1, 1] };
    let back = hosts[0].port(left, (&hosts[1], right)).expect("both hosts use ports 0 and 1");
    let injector = Injector::new(faults, place, [back.faults_since(false), from.faults_since(true)]);
    injector.begin();
    let from = Faulty::new(from, Side::Right, injector.clone()).expect("a thread can be started");
    let out = from.outgoing(to.incoming_offset(), WINDOW).expect("the window is as large");
    (0..WORDS).for_each(|word| out.store(8 * word, 1));
    out.fence();
    let arrived = (0..WORDS).filter(|word| to.incoming().load(8 * word) == 1).count();
    let dropped = injector.injected().drops.load(Ordering::Relaxed) as usize;
    println!("{arrived} of {WORDS} words have arrived, {dropped} were dropped");
    assert_eq!(arrived + dropped, WORDS);
    assert!(dropped > 0);
}
