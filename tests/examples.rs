//! The programs of `examples/`, run.

#[path = "../examples/fault.rs"]
mod fault;
#[path = "../examples/lane.rs"]
mod lane;
#[path = "../examples/ring.rs"]
mod ring;

#[test]
fn a_lane_keeps_its_order() {
    lane::main();
}

#[test]
fn four_hosts_in_one_process_reach_each_other() {
    ring::main();
}

#[test]
fn a_faulty_link_loses_writes() {
    fault::main();
}
