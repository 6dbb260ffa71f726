//! Runs the programs of `examples/`.

#[path = "../examples/fault.rs"]
mod fault;
#[path = "../examples/lane.rs"]
mod lane;
#[path = "../examples/ring.rs"]
mod ring;

use std::sync::mpsc::{channel, RecvTimeoutError};
use std::time::Duration;

/// Runs an example, and fails if it does not end within a minute.
fn run(example: fn()) {
    let (over, end) = channel();
    let thread = std::thread::spawn(move || {
        example();
        // An error means that the test has timed out already.
        let _ = over.send(());
    });
    assert_ne!(end.recv_timeout(Duration::from_secs(60)), Err(RecvTimeoutError::Timeout), "it hangs");
    thread.join().expect("the example does not panic");
}

#[test]
fn a_lane_keeps_its_order() {
    run(lane::main);
}

#[test]
fn four_hosts_in_one_process_reach_each_other() {
    run(ring::main);
}

#[test]
fn a_faulty_link_loses_writes() {
    run(fault::main);
}
