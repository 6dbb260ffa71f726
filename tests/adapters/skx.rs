//! Intel gen3.

use super::*;
use ntbring_pci::{Events, LinkStatus, Width};

const WINDOW: u64 = 1 << 20;

fn pair() -> Pair {
    Pair::new(Model::Skx.cable(WINDOW))
}

fn memory() -> Region {
    Region::anonymous(WINDOW as usize)
}

const UP: LinkStatus = LinkStatus::Up { generation: 3, width: 8 };

#[test]
fn modes_that_cannot_be_used_are_refused_with_the_remedy() {
    for (ppd, what) in [(0x00, "an ordinary root port"), (0x02, "NTB to root port"), (0x41, "split")] {
        let pair = pair();
        pair.configure(End::A, Space::Config, 0xd4, ppd, 1);
        let refusal = pair.refusal(End::A);
        assert!(refusal.contains(what) && refusal.contains("in the BIOS"), "{refusal}");
        assert!(pair.chip(End::B).is_ok());
    }
}

#[test]
fn the_link_is_up_when_both_ends_are_enabled() {
    let pair = pair();
    let memories = [memory(), memory()];
    let a = pair.started(End::A, &memories[0]);
    assert_eq!(a.link().unwrap(), LinkStatus::Down);
    let b = pair.started(End::B, &memories[1]);
    assert_eq!((a.link().unwrap(), b.link().unwrap()), (UP, UP));
    b.disable_link();
    assert_eq!((a.link().unwrap(), b.link().unwrap()), (LinkStatus::Down, LinkStatus::Down));
}

#[test]
fn a_flap_between_two_looks_is_seen() {
    let pair = pair();
    let memories = [memory(), memory()];
    let chips = [pair.started(End::A, &memories[0]), pair.started(End::B, &memories[1])];
    for chip in &chips {
        assert!(chip.take_events().unwrap().link_changed);
        assert_eq!(chip.take_events().unwrap(), Events::default());
    }
    pair.cable.lock().set_cable(false);
    pair.cable.lock().set_cable(true);
    for chip in &chips {
        assert_eq!(chip.link().unwrap(), UP);
        assert!(chip.take_events().unwrap().link_changed);
    }
}

#[test]
fn only_the_translated_part_of_the_window_can_be_written() {
    let pair = pair();
    let memories = [memory(), Region::anonymous(64 << 10)];
    let a = pair.started(End::A, &memories[0]);
    let b = pair.started(End::B, &memories[1]);
    let window = a.function().window(a.limits().aperture.bar, 0, WINDOW).unwrap();
    window.store(0, 1);
    window.store((64 << 10) - 8, 2);
    window.store(64 << 10, 3);
    let words = [0, (64 << 10) - 8].map(|at| memories[1].word(at).load(std::sync::atomic::Ordering::Relaxed));
    assert_eq!(words, [1, 2]);
    assert_eq!(pair.cable.lock().counts(End::A).dropped, 1);
    b.clear_translation();
    window.store(0, 4);
    assert_eq!(memories[1].word(0).load(std::sync::atomic::Ordering::Relaxed), 1);
    // The translation is withdrawn when a function is initialized, and nothing comes in without bus mastering.
    b.set_translation(5 * b.limits().iova_align, 64 << 10).unwrap();
    b.function().set_bus_master(false);
    window.store(0, 5);
    b.function().set_bus_master(true);
    b.initialize().unwrap();
    window.store(0, 6);
    assert_eq!(memories[1].word(0).load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[test]
fn doorbells_and_the_link_interrupt_although_one_vector_is_dead() {
    let pair = pair();
    let memories = [memory(), memory()];
    let a = pair.started(End::A, &memories[0]);
    let b = pair.started(End::B, &memories[1]);
    let interrupts = b.function().interrupts(b.limits().vectors, b.limits().least_vectors).unwrap();
    let count = |what: &str| interrupts.event.read().unwrap_or_else(|_| panic!("no interrupt: {what}"));
    b.enable_interrupts(u32::MAX);
    assert_eq!(b.limits().doorbells, 31, "doorbell 31 has the vector of the link");
    // The event from before the interrupts were enabled is reported now.
    count("the link has come up");
    assert!(b.take_events().unwrap().link_changed);
    for doorbell in 0..31 {
        a.ring(doorbell);
        count("a doorbell");
        assert_eq!(b.take_events().unwrap(), Events { doorbells: 1 << doorbell, link_changed: false });
    }
    pair.cable.lock().set_cable(false);
    count("the link has gone down");
    assert!(b.take_events().unwrap().link_changed);
    // Doorbells that are not enabled stay pending and interrupt nothing.
    pair.cable.lock().set_cable(true);
    b.take_events().unwrap();
    let _ = interrupts.event.read();
    b.enable_interrupts(0b1);
    a.ring(5);
    assert!(interrupts.event.read().is_err());
    assert_eq!(b.take_events().unwrap().doorbells, 1 << 5);
}

#[test]
fn scratchpads_are_cleared_at_the_start() {
    let pair = pair();
    let memories = [memory(), memory()];
    let a = pair.started(End::A, &memories[0]);
    let b = pair.started(End::B, &memories[1]);
    for register in 0..16 {
        a.set_peer_scratchpad(register, 7 + register as u32);
        assert_eq!(b.scratchpad(register).unwrap(), 7 + register as u32);
    }
    a.set_peer_scratchpad(3, u32::MAX);
    assert_eq!(b.scratchpad(3).unwrap(), u32::MAX, "all ones in one register are a value");
    b.initialize().unwrap();
    assert!((0..16).all(|register| b.scratchpad(register).unwrap() == 0));
}

#[test]
fn a_function_that_is_gone_is_noticed() {
    let pair = pair();
    let a = pair.started(End::A, &memory());
    pair.cable.lock().set_gone(End::A, true);
    let errors =
        [a.link().err(), a.take_events().err(), a.scratchpad(0).err(), a.initialize().err(), a.enable_link().err()];
    for error in errors {
        assert!(error.expect("an error").to_string().contains("is gone"));
    }
}

#[test]
fn windows_of_different_sizes_are_noticed() {
    // The limit register takes only addresses inside the memory range that the BIOS has set up.
    let pair = pair();
    let a = pair.chip(End::A).unwrap();
    a.initialize().unwrap();
    pair.cable.lock().set_stuck(End::A, 0x18);
    let error = a.set_translation(0, WINDOW).unwrap_err().to_string();
    assert!(error.contains("IMBAR1XLMT") && error.contains("BIOS"), "{error}");
    let base = a.function().read(Space::Bar(0), 0x10, Width::Qword);
    assert_eq!(base, 0, "nothing is let through");
}
