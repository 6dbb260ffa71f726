//! Intel gen3.

use super::*;
use ntbring_pci::Width;

const WINDOW: u64 = 1 << 20;

fn pair() -> Pair {
    Pair::new(Model::Skx.cable(WINDOW))
}

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

#[test]
fn one_vector_is_dead_and_another_has_two_interrupts() {
    let pair = pair();
    let chip = pair.chip(End::B).unwrap();
    chip.initialize().unwrap();
    assert_eq!(chip.limits().doorbells, 31, "doorbell 31 has the vector of the link");
    let vectors = [0, 30, 31, 32].map(|bit| chip.function().read(Space::Bar(0), 0xd0 + bit, Width::Byte));
    assert_eq!(vectors, [0, 30, 31, 31]);
}
