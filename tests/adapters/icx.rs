//! Intel gen4 and gen5.

use super::*;
use ntbring_pci::{Events, LinkStatus, Width};
use std::sync::atomic::Ordering;

const WINDOW: u64 = 1 << 20;
const BAR0: Space = Space::Bar(0);
const PPD0: u64 = 0xb0d4;
const PPD1: u64 = 0xb4c0;
const UP: LinkStatus = LinkStatus::Up { generation: 4, width: 8 };

fn pair(model: Model) -> Pair {
    Pair::new(model.cable(WINDOW))
}

fn memory() -> Region {
    Region::anonymous(WINDOW as usize)
}

fn read(chip: &Arc<dyn Chip>, offset: u64, width: Width) -> u64 {
    chip.function().read(BAR0, offset, width)
}

#[test]
fn modes_that_cannot_be_used_are_refused_with_the_remedy() {
    let root_port = "NTB to root port";
    let modes = [
        (Model::Icx, 0x000, "an ordinary root port"),
        (Model::Icx, 0x100, root_port),
        (Model::Icx, 0x300, root_port),
        (Model::Spr, 0x000, "an ordinary root port"),
        (Model::Spr, 0x100, root_port),
        (Model::Spr, 0x600, root_port),
    ];
    for (model, ppd1, what) in modes {
        let pair = pair(model);
        pair.configure(End::A, BAR0, PPD1, ppd1, 4);
        let refusal = pair.refusal(End::A);
        assert!(refusal.contains(what) && refusal.contains("in the BIOS"), "{refusal}");
        assert!(pair.chip(End::B).is_ok());
    }
}

#[test]
fn revisions_and_devices_tell_the_generation() {
    let pair = pair(Model::Icx);
    let chips = [
        (0x02, 0x347e, "Ice Lake"),
        (0x0f, 0x347e, "Ice Lake"),
        (0x10, 0x347e, "Sapphire Rapids"),
        (0x00, 0x0db4, "Granite Rapids"),
    ];
    for (revision, device, name) in chips {
        pair.configure(End::A, Space::Config, 2, device, 2);
        pair.configure(End::A, Space::Config, 8, revision, 1);
        let chip = pair.chip(End::A).unwrap();
        assert_eq!(chip.name(), format!("Intel {name} NTB"));
        assert_eq!(chip.limits().iova_align, if name == "Ice Lake" { WINDOW } else { 4096 });
    }
    pair.configure(End::A, Space::Config, 2, 0x347e, 2);
    pair.configure(End::A, Space::Config, 8, 0x01, 1);
    let refusal = pair.refusal(End::A);
    assert!(refusal.contains("before series production") && refusal.contains("later stepping"), "{refusal}");
}

#[test]
fn the_device_that_the_bios_asks_for_need_not_be_the_one_that_the_port_is() {
    for ppd1 in [0x0200, 0x1200, 0x4200, 0x5200] {
        let pair = pair(Model::Spr);
        pair.configure(End::A, BAR0, PPD1, ppd1, 4);
        let memories = [memory(), memory()];
        let chips = [pair.started(End::A, &memories[0]), pair.started(End::B, &memories[1])];
        assert!(chips.iter().all(|chip| chip.link().unwrap() == UP));
    }
}

#[test]
fn a_link_that_does_not_train_is_reported() {
    for model in [Model::Icx, Model::Spr] {
        let pair = pair(model);
        let chip = pair.chip(End::A).unwrap();
        chip.initialize().unwrap();
        pair.cable.lock().set_stuck(End::A, PPD0);
        let error = chip.enable_link().unwrap_err().to_string();
        assert!(error.contains("is not training") && error.contains("Gen4 only"), "{error}");
        assert_eq!(chip.link().unwrap(), LinkStatus::Down);
    }
}

#[test]
fn a_link_that_was_lost_is_trained_again_but_not_one_that_is_disabled() {
    for model in [Model::Icx, Model::Spr] {
        let pair = pair(model);
        let memories = [memory(), memory()];
        let [a, b] = [pair.started(End::A, &memories[0]), pair.started(End::B, &memories[1])];
        pair.cable.lock().set_cable(false);
        assert_eq!(read(&a, PPD0, Width::Dword) & 8, 8, "the link trains");
        // A chip that ends the training with the link.
        [End::A, End::B].into_iter().for_each(|end| pair.configure(end, BAR0, PPD0, 0, 4));
        assert_eq!((a.link().unwrap(), b.link().unwrap()), (LinkStatus::Down, LinkStatus::Down));
        pair.cable.lock().set_cable(true);
        assert_eq!((a.link().unwrap(), b.link().unwrap()), (UP, UP));
        b.disable_link();
        for chip in [&a, &b, &a, &b] {
            assert_eq!(chip.link().unwrap(), LinkStatus::Down);
        }
        b.enable_link().unwrap();
        assert_eq!((a.link().unwrap(), b.link().unwrap()), (UP, UP));
    }
}

#[test]
fn the_neighbour_sees_that_a_process_begins_anew() {
    for model in [Model::Icx, Model::Spr] {
        let pair = pair(model);
        let memories = [memory(), memory()];
        let [a, b] = [pair.started(End::A, &memories[0]), pair.started(End::B, &memories[1])];
        b.take_events().unwrap();
        // The process of A has died without disabling the link.
        drop(a);
        let a = pair.started(End::A, &memories[0]);
        assert!(b.take_events().unwrap().link_changed);
        assert_eq!((a.link().unwrap(), b.link().unwrap()), (UP, UP));
    }
}

#[test]
fn a_change_of_the_link_is_cleared_at_the_slot_first() {
    let pair = pair(Model::Icx);
    let memories = [memory(), memory()];
    let chips = [pair.started(End::A, &memories[0]), pair.started(End::B, &memories[1])];
    // What a driver that does not know it would do.
    chips[0].function().write(BAR0, 0x40, Width::Qword, 1 << 32);
    assert_eq!(read(&chips[0], 0x40, Width::Qword), 1 << 32);
    for chip in &chips {
        assert!(chip.take_events().unwrap().link_changed);
        assert_eq!(chip.take_events().unwrap(), Events::default());
    }
}

#[test]
fn ice_lake_takes_the_size_as_a_logarithm_too() {
    let pair = pair(Model::Icx);
    let memories = [memory(), memory()];
    let [a, b] = [pair.started(End::A, &memories[0]), pair.started(End::B, &memories[1])];
    assert_eq!(read(&b, 0x74, Width::Word), 20);
    let window = a.function().window(2, 0, WINDOW).unwrap();
    b.function().write(BAR0, 0x74, Width::Word, 16);
    window.store((64 << 10) - 8, 1);
    window.store(64 << 10, 2);
    let words = [(64 << 10) - 8, 64 << 10].map(|at| memories[1].word(at).load(Ordering::Relaxed));
    assert_eq!(words, [1, 0], "the window is short");
    // A size that is no power of two: the index is that of the next one, the limit is exact.
    b.set_translation(5 * WINDOW, 3 << 16).unwrap();
    assert_eq!(read(&b, 0x74, Width::Word), 18);
    window.store((3 << 16) - 8, 3);
    window.store(3 << 16, 4);
    let words = [(3 << 16) - 8, 3 << 16].map(|at| memories[1].word(at).load(Ordering::Relaxed));
    assert_eq!(words, [3, 0]);
    b.clear_translation();
    assert_eq!(read(&b, 0x74, Width::Word), 0);
}

#[test]
fn only_ice_lake_needs_memory_at_a_multiple_of_the_windows_size() {
    for (model, words) in [(Model::Icx, [1, 0]), (Model::Spr, [0, 1])] {
        let pair = pair(model);
        let memories = [memory(), memory()];
        let [a, b] = [pair.started(End::A, &memories[0]), pair.started(End::B, &memories[1])];
        b.function().map_memory(&memories[1], 9 * WINDOW).unwrap();
        b.function().write(BAR0, 0x10, Width::Qword, 9 * WINDOW + 8192);
        a.function().window(2, 0, 4096).unwrap().store(0, 1);
        assert_eq!([0, 8192].map(|at| memories[1].word(at).load(Ordering::Relaxed)), words, "{model:?}");
    }
}

#[test]
fn latency_tolerance_is_set_where_it_works() {
    let pair = pair(Model::Spr);
    let chip = pair.started(End::A, &memory());
    let values =
        |chip| [read(chip, 0x30f0, Width::Dword), read(chip, 0x30f4, Width::Dword), read(chip, 0x30ec, Width::Byte)];
    assert_eq!(values(&chip), [0x8800_8800, 0x8a58_8a58, 0]);
    chip.disable_link();
    assert_eq!(values(&chip)[2], 1);
    // An access to these registers of an Ice Lake, which would be wrong, is found when the pair is dropped.
    let older = Pair::new(Model::Icx.cable(WINDOW));
    older.started(End::A, &memory()).disable_link();
}

#[test]
fn registers_that_do_not_take_a_value_are_noticed() {
    for (model, register, name) in [
        (Model::Icx, 0x10, "IM23XBASE"),
        (Model::Icx, 0x18, "IM23XLMT"),
        (Model::Icx, 0x74, "IM23XBASEIDX"),
        (Model::Spr, 0x18, "IM23XLMT"),
    ] {
        let pair = pair(model);
        let chip = pair.chip(End::A).unwrap();
        chip.initialize().unwrap();
        pair.cable.lock().set_stuck(End::A, register);
        let error = chip.set_translation(WINDOW, WINDOW).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("BIOS"), "{error}");
        assert_eq!(read(&chip, 0x10, Width::Qword), 0, "nothing is let through");
    }
}
