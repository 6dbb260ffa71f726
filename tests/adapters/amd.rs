//! AMD and Hygon.

use super::*;
use ntbring_pci::{Events, LinkStatus, Width};
use std::sync::atomic::Ordering;

const WINDOW: u64 = 1 << 20;
const BAR0: Space = Space::Bar(0);
/// The neighbour's block.
const PEER: u64 = 0x400;
const SIDE_INFO: u64 = 0x408;
const READY: u64 = 2;
const LIMIT: u64 = 0x418;
const TRANSLATION: u64 = 0x438;
const EVENT_STATUS: u64 = 0x474;
const UP: LinkStatus = LinkStatus::Up { generation: 4, width: 16 };
/// The secondary host cannot read the speed.
const SECONDARY_UP: LinkStatus = LinkStatus::Up { generation: 0, width: 0 };

fn pair() -> Pair {
    Pair::new(Model::Amd.cable(WINDOW))
}

fn memories() -> [Region; 2] {
    [0; 2].map(|_| Region::anonymous(WINDOW as usize))
}

/// Returns the drivers of both ends after they have taken the events of the start.
fn started(pair: &Pair, memories: &[Region; 2]) -> [Arc<dyn Chip>; 2] {
    let chips = [pair.started(End::A, &memories[0]), pair.started(End::B, &memories[1])];
    chips.iter().for_each(|chip| assert!(chip.take_events().unwrap().link_changed));
    chips
}

fn read(chip: &Arc<dyn Chip>, offset: u64, width: Width) -> u64 {
    chip.function().read(BAR0, offset, width)
}

fn word(memory: &Region) -> u64 {
    memory.word(0).load(Ordering::Relaxed)
}

#[test]
fn chips_have_their_names() {
    let pair = pair();
    for id in [0x145b_1022, 0x148b_1022, 0x14c0_1022, 0x14c3_1022, 0x155a_1022, 0x17d4_1022, 0x17d7_1022] {
        pair.configure(End::A, Space::Config, 0, id, 4);
        assert_eq!(pair.chip(End::A).unwrap().name(), "AMD NTB");
    }
    pair.configure(End::A, Space::Config, 0, 0x145b_1d94, 4);
    assert_eq!(pair.chip(End::A).unwrap().name(), "Hygon NTB");
}

#[test]
fn a_translation_lies_in_the_block_of_the_neighbour() {
    let (pair, memories) = (pair(), memories());
    let [a, b] = started(&pair, &memories);
    let windows = [&a, &b].map(|chip| chip.function().window(2, 0, WINDOW).unwrap());
    let iova = 5 * 4096;
    for chip in [&a, &b] {
        let registers = [TRANSLATION, LIMIT].map(|at| read(chip, PEER + at, Width::Qword));
        assert_eq!(registers, [iova, WINDOW]);
    }
    windows[0].store(0, 1);
    windows[1].store(0, 2);
    assert_eq!([word(&memories[0]), word(&memories[1])], [2, 1]);
    // In its own block a host would set where its own writes go.
    b.clear_translation();
    b.function().write(BAR0, TRANSLATION, Width::Qword, iova);
    b.function().write(BAR0, LIMIT, Width::Qword, WINDOW);
    windows[0].store(0, 3);
    assert_eq!(word(&memories[1]), 1);
    // A limit is a size: it does not hold an address.
    b.function().write(BAR0, PEER + LIMIT, Width::Qword, (1 << 40) + WINDOW);
    assert_eq!(read(&b, PEER + LIMIT, Width::Qword), WINDOW);
}

#[test]
fn nothing_passes_before_both_ends_are_enabled() {
    let (pair, memories) = (pair(), memories());
    let [a, b] = started(&pair, &memories);
    let window = a.function().window(2, 0, WINDOW).unwrap();
    b.disable_link();
    window.store(0, 1);
    assert_eq!((word(&memories[1]), b.link().unwrap()), (0, LinkStatus::Down));
    b.enable_link().unwrap();
    window.store(0, 2);
    assert_eq!((word(&memories[1]), b.link().unwrap()), (2, SECONDARY_UP));
}

#[test]
fn registers_that_do_not_take_a_value_are_noticed() {
    for stuck in [&[PEER + TRANSLATION][..], &[PEER + LIMIT, LIMIT]] {
        let pair = pair();
        let chip = pair.chip(End::A).unwrap();
        chip.initialize().unwrap();
        stuck.iter().for_each(|&register| pair.cable.lock().set_stuck(End::A, register));
        let error = chip.set_translation(4096, WINDOW).unwrap_err().to_string();
        let name = if stuck.len() == 1 { "BAR23XLAT" } else { "BAR23LMT" };
        assert!(error.contains(name) && error.contains("BIOS"), "{error}");
        assert_eq!(read(&chip, PEER + TRANSLATION, Width::Qword), 0, "nothing is let through");
    }
}

#[test]
fn a_limit_may_lie_in_the_own_block() {
    let pair = pair();
    let chip = pair.chip(End::B).unwrap();
    chip.initialize().unwrap();
    pair.cable.lock().set_stuck(End::B, PEER + LIMIT);
    chip.set_translation(4096, WINDOW).unwrap();
    assert_eq!(read(&chip, LIMIT, Width::Qword), WINDOW);
    chip.clear_translation();
    assert_eq!(read(&chip, LIMIT, Width::Qword), 0, "the limit is withdrawn where it was set");
}

#[test]
fn the_neighbour_sees_that_a_process_begins_anew() {
    for end in End::BOTH {
        let (pair, memories) = (pair(), memories());
        let [a, b] = started(&pair, &memories);
        let (dead, other) = if end == End::A { (a, b) } else { (b, a) };
        drop(dead);
        assert_eq!(read(&other, PEER + SIDE_INFO, Width::Dword) & READY, READY, "the bit is stale");
        let again = pair.started(end, &memories[end as usize]);
        assert!(other.take_events().unwrap().link_changed, "the end of the first process is announced");
        assert_eq!(read(&again, SIDE_INFO, Width::Dword) & READY, READY);
        assert_ne!(other.link().unwrap(), LinkStatus::Down);
    }
}

#[test]
fn the_end_of_a_driver_is_an_event_of_the_link_not_a_doorbell() {
    let (pair, memories) = (pair(), memories());
    let [a, b] = started(&pair, &memories);
    let interrupts = a.function().interrupts(a.limits().vectors, a.limits().least_vectors).unwrap();
    a.enable_interrupts(0);
    b.disable_link();
    assert!(interrupts.event.read().is_ok());
    assert_eq!(a.take_events().unwrap(), Events { doorbells: 0, link_changed: true });
    assert_eq!(a.link().unwrap(), LinkStatus::Down);
}

#[test]
fn events_are_delivered_one_at_a_time() {
    let (pair, memories) = (pair(), memories());
    let [a, b] = started(&pair, &memories);
    let interrupts = b.function().interrupts(b.limits().vectors, b.limits().least_vectors).unwrap();
    b.enable_interrupts(u32::MAX);
    pair.cable.lock().set_cable(false);
    pair.cable.lock().set_cable(true);
    pair.cable.lock().set_cable(false);
    assert_eq!(read(&b, EVENT_STATUS, Width::Dword), 1 << 6);
    // The driver that clears an event without its acknowledgement gets no other.
    b.function().write(BAR0, EVENT_STATUS, Width::Dword, 1 << 6);
    assert_eq!(read(&b, EVENT_STATUS, Width::Dword), 0);
    b.function().write(BAR0, 0x4a0, Width::Dword, 1 << 6);
    assert_eq!(read(&b, EVENT_STATUS, Width::Dword), 1 << 5);
    for chip in [&a, &b] {
        assert!(chip.take_events().unwrap().link_changed);
        assert_eq!(chip.take_events().unwrap(), Events::default());
        assert_eq!(chip.link().unwrap(), LinkStatus::Down);
    }
    // The driver goes on after a flood, of which it handles a part at a time.
    let _ = interrupts.event.read();
    for is_plugged in [true, false, true, false, true] {
        pair.cable.lock().set_cable(is_plugged);
    }
    for chip in [&a, &b] {
        assert!(chip.take_events().unwrap().link_changed);
    }
    assert!(interrupts.event.read().is_ok(), "an interrupt tells that there are more");
    assert!(b.take_events().unwrap().link_changed && a.take_events().unwrap().link_changed);
    assert_eq!(b.take_events().unwrap(), Events::default());
    b.link().unwrap();
    assert_eq!((a.link().unwrap(), b.link().unwrap()), (UP, SECONDARY_UP));
}

#[test]
fn the_primary_host_clears_the_bit_of_a_neighbour_that_cannot() {
    let (pair, memories) = (pair(), memories());
    let [a, b] = started(&pair, &memories);
    pair.cable.lock().set_cable(false);
    assert!(a.take_events().unwrap().link_changed);
    assert_eq!(read(&a, PEER + SIDE_INFO, Width::Dword), 1, "the secondary side, not ready");
    pair.cable.lock().set_cable(true);
    assert!(a.take_events().unwrap().link_changed);
    assert_eq!(a.link().unwrap(), LinkStatus::Down, "the neighbour has not said that it is still there");
    assert!(b.take_events().unwrap().link_changed);
    assert_eq!((b.link().unwrap(), a.link().unwrap()), (SECONDARY_UP, UP));
}

#[test]
fn with_few_vectors_all_interrupts_have_the_first() {
    let (pair, memories) = (pair(), memories());
    let [a, b] = started(&pair, &memories);
    let interrupts = b.function().interrupts(1, 1).unwrap();
    b.enable_interrupts(u32::MAX);
    for doorbell in 0..15 {
        a.ring(doorbell);
        assert!(interrupts.event.read().is_ok(), "doorbell {doorbell}");
        assert_eq!(b.take_events().unwrap().doorbells, 1 << doorbell);
    }
    pair.cable.lock().set_cable(false);
    assert!(interrupts.event.read().is_ok());
    assert!(b.take_events().unwrap().link_changed);
}

#[test]
fn a_neighbour_that_loses_power_and_comes_back_is_noticed() {
    let (pair, memories) = (pair(), memories());
    let [a, b] = started(&pair, &memories);
    drop(b);
    pair.cable.lock().set_power(End::B, false);
    assert!(a.take_events().unwrap().link_changed);
    assert_eq!(a.link().unwrap(), LinkStatus::Down);
    pair.cable.lock().set_power(End::B, true);
    assert!(a.take_events().unwrap().link_changed);
    assert_eq!(a.link().unwrap(), LinkStatus::Down);
    let b = pair.started(End::B, &memories[1]);
    b.take_events().unwrap();
    assert_eq!((a.link().unwrap(), b.link().unwrap()), (UP, SECONDARY_UP));
}
