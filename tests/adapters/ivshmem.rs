//! ivshmem: memory that two virtual machines share.

use super::*;
use ntbring_models::Ivshmem;
use ntbring_pci::{Aperture, Events, LinkStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const UP: LinkStatus = LinkStatus::Up { generation: 0, width: 0 };

fn pair() -> Pair {
    Pair::new(Model::Ivshmem.cable(1 << 20))
}

/// Starts the driver of a function.
fn start(pair: &Pair, end: End) -> Arc<dyn Chip> {
    let chip = pair.chip(end).unwrap();
    chip.initialize().unwrap();
    chip.function().set_bus_master(true);
    chip.enable_link().unwrap();
    chip
}

/// Returns the memory that the neighbour of a driver writes.
fn incoming(chip: &Arc<dyn Chip>) -> Region {
    let Aperture { bar, offset, size } = chip.limits().memory.expect("memory of the device");
    chip.function().memory(bar, offset, size).unwrap().region().clone()
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn devices_that_cannot_be_used_are_refused_with_the_reason() {
    let plain = pair();
    plain.configure(End::A, Space::Config, 0x34, 0, 1);
    let refusal = plain.refusal(End::A);
    assert!(refusal.contains("ivshmem-plain") && refusal.contains("-device ivshmem-doorbell"), "{refusal}");
    let old = pair();
    old.configure(End::A, Space::Config, 8, 0x0500_0000, 4);
    assert!(old.refusal(End::A).contains("QEMU before 2.6"));
    let small = Pair::new(Cable::new(Ivshmem::new(64 << 10)));
    let refusal = small.refusal(End::A);
    assert!(refusal.contains("has 65536 bytes, and at least 1048576 are needed"), "{refusal}");
    let foreign = pair();
    foreign.cable.lock().memory(2).unwrap().region().word(0).store(5, Ordering::Relaxed);
    assert!(foreign.refusal(End::A).contains("holds data of another program"));
}

#[test]
fn each_host_writes_the_half_of_the_other() {
    let pair = pair();
    let chips = End::BOTH.map(|end| start(&pair, end));
    let memories = chips.each_ref().map(incoming);
    for (number, chip) in chips.iter().enumerate() {
        let Aperture { bar, offset, size } = chip.limits().aperture;
        let window = chip.function().window(bar, offset, size).unwrap();
        window.store(0, 1 + number as u64);
        window.store(size as usize - 8, 3 + number as u64);
    }
    let words =
        memories.each_ref().map(|memory| [0, memory.len() - 8].map(|at| memory.word(at).load(Ordering::Relaxed)));
    assert_eq!(words, [[2, 4], [1, 3]]);
    assert_eq!(chips.map(|chip| chip.scratchpad(0).unwrap()), [0; 2], "words lie apart from windows");
}

#[test]
fn doorbells_and_the_neighbours_start_and_end_interrupt() {
    let pair = pair();
    let b = start(&pair, End::B);
    let interrupts = b.function().interrupts(b.limits().vectors, b.limits().least_vectors).unwrap();
    let count = |what: &str| interrupts.event.read().unwrap_or_else(|_| panic!("no interrupt: {what}"));
    // The first to start does not know its neighbour's id yet.
    let a = start(&pair, End::A);
    assert!(b.take_events().unwrap().link_changed && b.link().unwrap() == UP);
    assert_eq!(a.link().unwrap(), UP);
    for doorbell in 0..b.limits().doorbells {
        a.ring(doorbell);
        count("a doorbell");
        assert_eq!(b.take_events().unwrap(), Events { doorbells: 1 << doorbell, link_changed: false });
    }
    a.ring(3);
    a.ring(3);
    assert_eq!(b.take_events().unwrap().doorbells, 1 << 3);
    a.disable_link();
    count("the neighbour leaves");
    assert!(b.take_events().unwrap().link_changed);
    assert_eq!(b.link().unwrap(), LinkStatus::Down);
}

#[test]
fn a_neighbour_that_has_died_is_noticed_and_replaced() {
    let pair = pair();
    let (a, former) = (start(&pair, End::A), start(&pair, End::B));
    until("the link comes up", || [&a, &former].iter().all(|chip| chip.link().unwrap() == UP));
    // The machine of B ends without a farewell, and starts again with another id.
    until("silence is noticed", || a.link().unwrap() == LinkStatus::Down);
    pair.cable.lock().set_power(End::B, false);
    pair.cable.lock().set_power(End::B, true);
    a.take_events().unwrap();
    let is_over = AtomicBool::new(false);
    let successor = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                a.link().unwrap();
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let successor = start(&pair, End::B);
        is_over.store(true, Ordering::Relaxed);
        successor
    });
    assert_eq!(successor.limits(), former.limits(), "the half of the living host is left alone");
    assert!(a.take_events().unwrap().link_changed);
    until("the link comes up again", || [&a, &successor].iter().all(|chip| chip.link().unwrap() == UP));
    let interrupts = successor.function().interrupts(1, 1).unwrap();
    a.ring(7);
    assert!(interrupts.event.read().is_ok(), "the interrupt goes to the new id");
    assert_eq!(successor.take_events().unwrap().doorbells, 1 << 7);
    // If the former machine was only paused, it learns that it was replaced.
    let error = former.link().expect_err("an error").to_string();
    assert!(error.contains("taken over") && error.contains("Restart ntbringd"), "{error}");
    drop(former);
    assert!(successor.link().is_ok(), "the former driver takes nothing away from the new one");
}

#[test]
fn an_agent_that_starts_again_has_its_half() {
    let pair = pair();
    let (a, former) = (start(&pair, End::A), start(&pair, End::B));
    let successor = start(&pair, End::B);
    assert_eq!((successor.limits(), former.link().is_err()), (former.limits(), true));
    assert!(a.take_events().unwrap().link_changed);
}
