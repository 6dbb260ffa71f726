//! Tests that the driver of every chip must pass.

use super::*;
use ntbring_pci::{Events, LinkStatus, Width};

const WINDOW: u64 = 1 << 20;

fn memory() -> Region {
    Region::anonymous(WINDOW as usize)
}

/// Returns the state of a link that is up, as the two ends see it.
fn up(model: Model) -> (LinkStatus, LinkStatus) {
    let [known, unknown] = [(4, 16), (0, 0)].map(|(generation, width)| LinkStatus::Up { generation, width });
    let xeon = |generation| LinkStatus::Up { generation, width: 8 };
    match model {
        Model::Skx => (xeon(3), xeon(3)),
        Model::Icx | Model::Spr => (xeon(4), xeon(4)),
        Model::Amd => (known, unknown),
        Model::Ivshmem => (unknown, unknown),
        Model::Plx87 | Model::Plx87RootPort => (xeon(3), xeon(3)),
    }
}

/// Lets both ends look at the link, for an end of some chips has to train a link that it has lost.
fn look(chips: [&Arc<dyn Chip>; 2]) {
    chips.iter().for_each(|chip| assert!(chip.link().is_ok()));
}

macro_rules! run_on_every_chip {
    ($($test:ident)*) => {
        run_on_every_chip!(skx Model::Skx, $($test)*);
        run_on_every_chip!(icx Model::Icx, $($test)*);
        run_on_every_chip!(spr Model::Spr, $($test)*);
        run_on_every_chip!(amd Model::Amd, $($test)*);
    };
    ($name:ident $model:expr, $($test:ident)*) => {
        mod $name {
            use super::Model;
            $(#[test] fn $test() { super::$test($model); })*
        }
    };
}

// The links of these are up from the start, and only their loss is an event: `plx` has tests of its own for that.
run_on_every_chip!(plx Model::Plx87,
    a_silent_link_has_causes_that_can_be_looked_for
    only_the_translated_part_of_the_window_can_be_written
    scratchpads_are_cleared_at_the_start
    a_function_that_is_gone_is_noticed
);
run_on_every_chip!(plx_root_port Model::Plx87RootPort,
    a_silent_link_has_causes_that_can_be_looked_for
    only_the_translated_part_of_the_window_can_be_written
    scratchpads_are_cleared_at_the_start
    a_function_that_is_gone_is_noticed
);

// Its neighbour can always write the memory, and nothing reports that a link has failed: `ivshmem` has tests of its own.
run_on_every_chip!(ivshmem Model::Ivshmem,
    the_link_is_up_when_both_ends_are_enabled
    scratchpads_are_cleared_at_the_start
    a_function_that_is_gone_is_noticed
);

run_on_every_chip! {
    a_silent_link_has_causes_that_can_be_looked_for
    the_link_is_up_when_both_ends_are_enabled
    a_flap_between_two_looks_is_seen
    only_the_translated_part_of_the_window_can_be_written
    doorbells_and_the_link_interrupt
    scratchpads_are_cleared_at_the_start
    a_function_that_is_gone_is_noticed
}

fn the_link_is_up_when_both_ends_are_enabled(model: Model) {
    let pair = Pair::new(model.cable(WINDOW));
    let memories = [memory(), memory()];
    let a = pair.started(End::A, &memories[0]);
    assert_eq!(a.link().unwrap(), LinkStatus::Down);
    let b = pair.started(End::B, &memories[1]);
    assert_eq!((a.link().unwrap(), b.link().unwrap()), up(model));
    b.disable_link();
    assert_eq!((a.link().unwrap(), b.link().unwrap()), (LinkStatus::Down, LinkStatus::Down));
}

fn a_flap_between_two_looks_is_seen(model: Model) {
    let pair = Pair::new(model.cable(WINDOW));
    let memories = [memory(), memory()];
    let chips = [pair.started(End::A, &memories[0]), pair.started(End::B, &memories[1])];
    for chip in &chips {
        assert!(chip.take_events().unwrap().link_changed);
        assert_eq!(chip.take_events().unwrap(), Events::default());
    }
    pair.cable.lock().set_cable(false);
    pair.cable.lock().set_cable(true);
    look(chips.each_ref());
    for (chip, up) in chips.iter().zip(<[LinkStatus; 2]>::from(up(model))) {
        assert_eq!(chip.link().unwrap(), up);
        assert!(chip.take_events().unwrap().link_changed);
    }
}

fn only_the_translated_part_of_the_window_can_be_written(model: Model) {
    let pair = Pair::new(model.cable(WINDOW));
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

fn doorbells_and_the_link_interrupt(model: Model) {
    let pair = Pair::new(model.cable(WINDOW));
    let memories = [memory(), memory()];
    let a = pair.started(End::A, &memories[0]);
    let b = pair.started(End::B, &memories[1]);
    let interrupts = b.function().interrupts(b.limits().vectors, b.limits().least_vectors).unwrap();
    let count = |what: &str| interrupts.event.read().unwrap_or_else(|_| panic!("no interrupt: {what}"));
    b.enable_interrupts(u32::MAX);
    // The event from before the interrupts were enabled is reported now.
    count("the link has come up");
    assert!(b.take_events().unwrap().link_changed);
    for doorbell in 0..b.limits().doorbells {
        a.ring(doorbell);
        count("a doorbell");
        assert_eq!(b.take_events().unwrap(), Events { doorbells: 1 << doorbell, link_changed: false });
    }
    pair.cable.lock().set_cable(false);
    count("the link has gone down");
    assert!(b.take_events().unwrap().link_changed);
    // Doorbells that are not enabled stay pending and interrupt nothing.
    pair.cable.lock().set_cable(true);
    look([&a, &b]);
    b.take_events().unwrap();
    let _ = interrupts.event.read();
    b.enable_interrupts(0b1);
    a.ring(5);
    assert!(interrupts.event.read().is_err());
    assert_eq!(b.take_events().unwrap().doorbells, 1 << 5);
}

fn scratchpads_are_cleared_at_the_start(model: Model) {
    let pair = Pair::new(model.cable(WINDOW));
    let memories = [memory(), memory()];
    let a = pair.started(End::A, &memories[0]);
    let b = pair.started(End::B, &memories[1]);
    let registers = 0..b.limits().scratchpads;
    for register in registers.clone() {
        a.set_peer_scratchpad(register, 7 + register as u32);
        assert_eq!(b.scratchpad(register).unwrap(), 7 + register as u32);
    }
    a.set_peer_scratchpad(3, u32::MAX);
    assert_eq!(b.scratchpad(3).unwrap(), u32::MAX, "all ones in one register are a value");
    b.initialize().unwrap();
    assert!(registers.into_iter().all(|register| b.scratchpad(register).unwrap() == 0));
}

fn a_function_that_is_gone_is_noticed(model: Model) {
    let pair = Pair::new(model.cable(WINDOW));
    let a = pair.started(End::A, &memory());
    let identity = a.function().identity();
    pair.cable.lock().set_gone(End::A, true);
    assert_eq!(
        a.function().read(Space::Config, 0, Width::Dword) as u16,
        identity.vendor,
        "VFIO answers reads of the ids"
    );
    let errors =
        [a.link().err(), a.take_events().err(), a.scratchpad(0).err(), a.initialize().err(), a.enable_link().err()];
    for error in errors {
        assert!(error.expect("an error").to_string().contains("is gone"));
    }
}

fn a_silent_link_has_causes_that_can_be_looked_for(model: Model) {
    let pair = Pair::new(model.cable(WINDOW));
    let causes = pair.chip(End::A).unwrap().causes_of_silence();
    for cause in ["IOMMU of the receiving host", "its kernel log says so", "bus mastering", "another driver", "window"]
    {
        assert!(causes.contains(cause) || cause == "window" && causes.contains("ranges"), "{cause}: {causes}");
    }
    let needs_kernel = !matches!(model, Model::Skx | Model::Icx | Model::Spr);
    assert_eq!(causes.contains("before 5.5"), needs_kernel, "ids that older kernels do not know: {causes}");
}
