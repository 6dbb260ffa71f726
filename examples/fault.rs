//! A link that loses every tenth write: the decorator of faults around a port.
//!
//!     cargo run --example fault

use ntbring_ntb::fault::{Faults, Faulty, Injector, Place};
use ntbring_ntb::loopback::LoopbackHost;
use ntbring_ntb::{Port, Side};
use std::sync::atomic::Ordering;

/// Bytes of each window.
const WINDOW: u64 = 64 << 10;
/// Words that are written.
const WORDS: usize = 1000;

/// Runs the example.
pub fn main() {
    let hosts = [LoopbackHost::new(WINDOW as usize), LoopbackHost::new(WINDOW as usize)];
    let from = hosts[0].port(Side::Right, &hosts[1]).expect("both hosts are in this process");
    let to = hosts[1].port(Side::Left, &hosts[0]).expect("both hosts are in this process");
    let faults = Faults::parse("drop=0.1,seed=1").expect("docs/faults.md").expect("there are faults");
    let place = Place { host: 0, process: 0, neighbours: [1, 1] };
    let left = hosts[0].port(Side::Left, &hosts[1]).expect("both hosts are in this process");
    let injector = Injector::new(faults, place, [left.faults_since(), from.faults_since()]);
    injector.begin();
    let from = Faulty::new(from, injector.clone()).expect("a thread can be started");
    let out = from.outgoing(to.incoming_offset(), WINDOW).expect("the window is as large");
    (0..WORDS).for_each(|word| out.store(8 * word, 1));
    out.fence();
    let arrived = (0..WORDS).filter(|word| to.incoming().load(8 * word) == 1).count();
    let dropped = injector.injected().drops.load(Ordering::Relaxed) as usize;
    println!("{arrived} of {WORDS} words have arrived, {dropped} were dropped");
    assert_eq!(arrived + dropped, WORDS);
    assert!(dropped > 0);
}
