//! PLX/Broadcom PEX 87xx, back to back and NTB to root port.

use super::*;
use ntbring_models::{Plx87, READER_ID};
use ntbring_ntb::PortIndex;
use ntbring_pci::{Adapter, Events, LinkStatus, Registers, Space, Width};
use std::sync::atomic::Ordering;
use std::time::Duration;

const MIB: u64 = 1 << 20;
const UP: LinkStatus = LinkStatus::Up { generation: 3, width: 8 };
/// The pages of the NTB 0.
const VIRTUAL: u64 = 0x3e000;
const LINK: u64 = 0x3f000;
/// The register that disables the port of the NTB 0, and its bit.
const PORT_DISABLE: (u64, u64) = (0x8208, 1 << 1);

fn back_to_back() -> Pair {
    Pair::new(Cable::new(Plx87::back_to_back(0x8749, 0, [MIB, MIB])))
}

fn root_port() -> Pair {
    Pair::new(Cable::new(Plx87::root_port(0x8749, 0, [MIB, 0])))
}

/// Two functions whose drivers are started, and the memories of their hosts.
struct Started {
    pair: Pair,
    memories: [Region; 2],
    chips: [Arc<dyn Chip>; 2],
}

impl Started {
    fn new(pair: Pair) -> Started {
        let size = |end: End| pair.chip(end).unwrap().limits().incoming as usize;
        let memories = End::BOTH.map(|end| Region::anonymous(size(end)));
        let chips = End::BOTH.map(|end| pair.started(end, &memories[end as usize]));
        Started { pair, memories, chips }
    }

    /// Prepares a function again, as after each loss of the link.
    fn prepare(&self, end: End) {
        let chip = &self.chips[end as usize];
        chip.function().set_bus_master(true);
        chip.initialize().unwrap();
        chip.set_translation(5 * chip.limits().iova_align, chip.limits().incoming).unwrap();
    }

    /// Writes a word through the window of a function. Returns true if it arrives.
    fn arrives(&self, from: End, offset: u64) -> bool {
        let (chip, word) = (&self.chips[from as usize], fastrand::u64(1..));
        let aperture = chip.limits().aperture;
        let window = chip.function().window(aperture.bar, aperture.offset, aperture.size).unwrap();
        window.store(offset as usize, word);
        self.memories[from.opposite() as usize].word(offset as usize).load(Ordering::Relaxed) == word
    }

    /// Checks that windows, scratchpads and doorbells work in both directions.
    fn check(&self) {
        for from in End::BOTH {
            let [mine, peer] = [from, from.opposite()].map(|end| &self.chips[end as usize]);
            let limits = mine.limits();
            assert!([0, 4096, limits.aperture.size - 8].iter().all(|&offset| self.arrives(from, offset)));
            let (registers, doorbells) = (limits.scratchpads, limits.doorbells);
            let value = |register: usize| 0x8000_0000 * from as u32 + 100 + register as u32;
            (0..registers).for_each(|register| mine.set_peer_scratchpad(register, value(register)));
            assert!((0..registers).all(|register| peer.scratchpad(register).unwrap() == value(register)));
            peer.take_events().unwrap();
            (0..doorbells).for_each(|doorbell| mine.ring(doorbell));
            assert_eq!(peer.take_events().unwrap(), Events { doorbells: 0xffff, link_changed: false });
            let counts = self.pair.cable.lock().counts(from);
            assert_eq!((counts.misunderstood, counts.window_reads), (0, 0), "{counts:?}");
        }
    }

    /// Writes a register of the switch of a function.
    fn poke(&self, end: End, offset: u64, value: u64) {
        self.pair.functions[end as usize].write(Space::Bar(0), offset, Width::Dword, value);
    }
}

#[test]
fn chips_that_cannot_be_used_are_refused_with_the_reason() {
    for (chip, problem) in [
        (0x8747, "has no NTB"),
        (0x8723, "has no NTB"),
        (0x8764, "cannot fill the table of requester ids"),
        (0x9797, "another family"),
    ] {
        let pair = back_to_back();
        pair.configure(End::A, Space::Config, 0x958, chip << 16 | 0x10b5, 4);
        let refusal = pair.refusal(End::A);
        assert!(refusal.contains(&format!("{chip:04x}")) && refusal.contains(problem), "{refusal}");
        assert!(refusal.contains("8749"), "the chips that can be used are named: {refusal}");
        assert!(pair.chip(End::B).is_ok());
    }
    for (offset, value, len) in [(0xc8c, 1 << 31, 4), (0xc8c, 1, 4), (2, 0x87a0, 2), (2, 0x87b1, 2)] {
        let pair = back_to_back();
        pair.configure(End::A, Space::Config, offset, value, len);
        assert!(pair.refusal(End::A).contains("name two interfaces"), "{}", pair.refusal(End::A));
    }
    for (chip, nt, ranges, problem) in [
        (0x8748, 1, [MIB, MIB], "has only one NTB"),
        (0x8749, 0, [MIB / 2, MIB], "has 64 bits and 524288 bytes"),
        (0x8749, 0, [0, 0], "no memory range for a window"),
        (0x8749, 0, [MIB, 0], "no memory range for a window"),
    ] {
        let refusal = Pair::new(Cable::new(Plx87::back_to_back(chip, nt, ranges))).refusal(End::A);
        assert!(refusal.contains(problem), "{refusal}");
    }
    let pair = back_to_back();
    pair.cable.lock().set_gone(End::A, true);
    assert!(pair.refusal(End::A).contains("is gone"));
}

#[test]
fn all_sets_of_memory_ranges_and_both_ntbs_work() {
    for chip in [0x8748, 0x8749] {
        for nt in 0..if chip == 0x8749 { 2 } else { 1 } {
            for (ranges, aperture) in [
                ([MIB, MIB], (2, 0, MIB)),
                ([MIB, 2 * MIB], (2, 0, MIB)),
                ([MIB, 8 * MIB], (4, 4 * MIB, 4 * MIB)),
                ([4 * MIB, 0], (2, 2 * MIB, 2 * MIB)),
                ([0, 2 * MIB], (4, MIB, MIB)),
            ] {
                let started = Started::new(Pair::new(Cable::new(Plx87::back_to_back(chip, nt, ranges))));
                let found = started.chips[0].limits().aperture;
                assert_eq!((found.bar, found.offset, found.size), aperture);
                started.check();
            }
            Started::new(Pair::new(Cable::new(Plx87::root_port(chip, nt, [MIB, 2 * MIB])))).check();
        }
    }
    // Without the vendor-specific capability the subsystem id is the number.
    let pair = back_to_back();
    End::BOTH.into_iter().for_each(|end| pair.configure(end, Space::Config, 0x958, 0, 4));
    Started::new(pair).check();
}

#[test]
fn writes_of_a_requester_without_an_entry_are_dropped() {
    let started = Started::new(back_to_back());
    // The first two entries of the own table: nothing leaves, neither to memory nor to registers.
    started.poke(End::A, VIRTUAL + 0xd94, 0);
    assert!(!started.arrives(End::A, 0) && started.arrives(End::B, 0));
    started.chips[0].ring(3);
    assert_eq!(started.chips[1].take_events().unwrap(), Events::default());
    assert_eq!(started.pair.cable.lock().counts(End::A).dropped, 2);
    started.prepare(End::A);
    started.check();
    // The table of the cable at the receiver is for its memory only.
    started.poke(End::B, LINK + 0xdb4, 0);
    assert!(!started.arrives(End::A, 0));
    started.chips[0].ring(3);
    assert_eq!(started.chips[1].take_events().unwrap().doorbells, 1 << 3);
    started.prepare(End::B);
    started.check();
}

#[test]
fn nothing_comes_in_without_bus_mastering_or_a_translation() {
    for pair in [back_to_back(), root_port()] {
        let started = Started::new(pair);
        started.check();
        for end in End::BOTH {
            let (chip, from) = (&started.chips[end as usize], end.opposite());
            chip.function().set_bus_master(false);
            assert!(!started.arrives(from, 0) && started.arrives(end, 0));
            chip.function().set_bus_master(true);
            assert!(started.arrives(from, 0));
            chip.clear_translation();
            assert!(!started.arrives(from, 0));
            started.prepare(end);
            chip.initialize().unwrap();
            assert!(!started.arrives(from, 0), "the translation is withdrawn when a function is initialized");
            started.prepare(end);
        }
        started.check();
    }
}

#[test]
fn only_the_translated_part_of_the_window_can_be_written() {
    let started = Started::new(Pair::new(Cable::new(Plx87::back_to_back(0x8749, 0, [4 * MIB, MIB]))));
    let chip = &started.chips[1];
    chip.set_translation(5 * chip.limits().iova_align, MIB + 1).unwrap();
    assert_eq!(chip.translated(MIB + 1), 2 * MIB);
    assert!(started.arrives(End::A, 2 * MIB - 8) && !started.arrives(End::A, 2 * MIB));
    started.pair.cable.lock().set_stuck(End::B, LINK + 0xc3c);
    let error = chip.set_translation(7 * chip.limits().iova_align, MIB).unwrap_err().to_string();
    assert!(error.contains("address translation"), "{error}");
    assert!(!started.arrives(End::A, 0), "nothing is let through");
}

#[test]
fn a_loss_of_the_link_is_noticed_and_what_it_destroys_is_set_again() {
    let started = Started::new(back_to_back());
    started.check();
    for end in End::BOTH {
        let chip = &started.chips[end as usize];
        assert!(!chip.vanishes());
        chip.enable_interrupts(0xffff);
    }
    let interrupts = started.chips[1].function().interrupts(1, 1).unwrap();
    started.pair.cable.lock().set_cable(false);
    assert!(interrupts.event.read().is_ok(), "the loss of the link interrupts");
    assert!(started.chips.iter().all(|chip| chip.link().unwrap() == LinkStatus::Down));
    started.pair.cable.lock().set_cable(true);
    for (end, chip) in End::BOTH.into_iter().zip(&started.chips) {
        assert_eq!(chip.link().unwrap(), UP);
        assert!(!started.arrives(end, 0), "the Link interface is reset");
        assert!(chip.take_events().unwrap().link_changed);
        assert_eq!(chip.take_events().unwrap(), Events::default());
    }
    started.prepare(End::A);
    assert!(!started.arrives(End::A, 0) && !started.arrives(End::B, 0), "one end alone is not enough");
    started.prepare(End::B);
    started.check();
}

#[test]
fn a_port_that_is_disabled_at_the_start_is_enabled() {
    let pair = back_to_back();
    let disabled = |end: End| pair.functions[end as usize].read(Space::Bar(0), PORT_DISABLE.0, Width::Dword);
    for end in End::BOTH {
        // The other ports of the station stay as they are.
        let value = 1 << 4 | PORT_DISABLE.1;
        pair.functions[end as usize].write(Space::Bar(0), PORT_DISABLE.0, Width::Dword, value);
    }
    let chips = End::BOTH.map(|end| pair.chip(end).unwrap());
    chips.iter().for_each(|chip| chip.initialize().unwrap());
    assert_eq!(chips[0].link().unwrap(), LinkStatus::Down);
    chips[0].enable_link().unwrap();
    assert_eq!((disabled(End::A), chips[0].link().unwrap()), (1 << 4, LinkStatus::Down));
    chips[1].enable_link().unwrap();
    assert_eq!(chips[0].link().unwrap(), UP);
    chips[1].disable_link();
    assert_eq!((disabled(End::B), chips[0].link().unwrap()), (1 << 4 | PORT_DISABLE.1, LinkStatus::Down));
}

#[test]
fn the_interrupt_line_is_masked_until_it_is_unmasked() {
    for pair in [back_to_back(), root_port()] {
        let started = Started::new(pair);
        for end in End::BOTH {
            let [peer, chip] = [end.opposite(), end].map(|end| &started.chips[end as usize]);
            chip.take_events().unwrap();
            let interrupts = chip.function().interrupts(1, 1).unwrap();
            chip.enable_interrupts(0b1111);
            peer.ring(4);
            assert!(interrupts.event.read().is_err(), "the doorbell is not enabled");
            peer.ring(2);
            assert_eq!(interrupts.event.read().unwrap(), 1);
            peer.ring(3);
            assert!(interrupts.event.read().is_err(), "the line is masked");
            chip.function().unmask_line();
            assert!(interrupts.event.read().is_ok(), "doorbells are still pending");
            assert_eq!(chip.take_events().unwrap().doorbells, 0b11100);
            chip.function().unmask_line();
            assert!(interrupts.event.read().is_err());
            peer.ring(0);
            assert!(interrupts.event.read().is_ok());
        }
    }
}

#[test]
fn a_link_function_that_vanishes_comes_back() {
    let started = Started::new(root_port());
    started.check();
    let [a, b] = &started.chips;
    assert_eq!((a.vanishes(), b.vanishes(), a.limits().scratchpads), (false, true, 4));
    let gone = |what: &str| {
        let errors = [b.link().err(), b.take_events().err(), b.scratchpad(0).err(), b.initialize().err()];
        assert!(
            errors.into_iter().all(|error| error.is_some_and(|error| error.to_string().contains("is gone"))),
            "{what}"
        );
    };
    started.pair.cable.lock().set_cable(false);
    gone("there is no link");
    assert_eq!(a.link().unwrap(), LinkStatus::Down);
    started.pair.cable.lock().set_cable(true);
    assert_eq!(a.link().unwrap(), UP);
    assert!(a.take_events().unwrap().link_changed);
    gone("its memory ranges have no addresses, so that a flap between two looks is seen");
    started.prepare(End::A);
    started.prepare(End::B);
    assert_eq!(b.link().unwrap(), UP);
    started.check();
    // The other host's function would vanish.
    a.disable_link();
    b.disable_link();
    started.check();
}

#[test]
fn another_system_that_enumerates_the_link_interface_is_noticed() {
    let pair = back_to_back();
    let chip = pair.chip(End::A).unwrap();
    let poke = |offset, value| pair.functions[0].write(Space::Bar(0), LINK + offset, Width::Dword, value);
    poke(0xe4, 3);
    poke(0x10, 0x1000_0004);
    let error = chip.initialize().unwrap_err().to_string();
    assert!(error.contains("has enumerated the other side") && error.contains("Start ntbringd"), "{error}");
    let refusal = pair.refusal(End::A);
    assert!(refusal.contains("BAR 2 of its other interface is off"), "{refusal}");
}

/// Opens the adapters of both hosts.
fn adapters(pair: &Pair) -> [Arc<Adapter>; 2] {
    let [port, ..] = PortIndex::ALL;
    End::BOTH.map(|end| Adapter::open(pair.chip(end).unwrap(), port, 1 + end as u64, MIB).unwrap())
}

fn serve(adapters: &[Arc<Adapter>; 2], now: Duration) {
    for adapter in adapters {
        adapter.serve(now, fastrand::u64(..));
    }
}

/// Serves the adapters until the link is up at both ends. `now` is the time at which this begins; returns that at which
/// it ends.
fn serve_until_up(adapters: &[Arc<Adapter>; 2], mut now: Duration) -> Duration {
    let end = now + Duration::from_secs(120);
    while adapters.iter().any(|adapter| adapter.peer().is_none()) {
        assert!(now < end, "{} / {}", adapters[0].why_down(), adapters[1].why_down());
        serve(adapters, now);
        now += Duration::from_millis(5);
    }
    now
}

#[test]
fn writes_get_the_requester_id_that_the_iommu_knows() {
    for (writer, round) in [0, READER_ID].into_iter().flat_map(|writer| [0, 1, 2].map(|round| (writer, round))) {
        let models = [Plx87::back_to_back(0x8749, 0, [MIB, MIB]), Plx87::root_port(0x8749, 0, [MIB, 0])];
        for model in models.map(|model| model.with_strict_iommu(writer)) {
            let pair = Pair::new(Cable::new(model));
            let adapters = adapters(&pair);
            if round > 0 {
                // One end alone has the wrong way at first.
                adapters[round - 1].chip().retry_outgoing();
            }
            serve_until_up(&adapters, Duration::ZERO);
        }
    }
}

#[test]
fn a_link_that_comes_and_goes_at_any_time_is_up_in_the_end() {
    for pair in [back_to_back(), root_port()] {
        let (adapters, mut now) = (adapters(&pair), Duration::ZERO);
        for _ in 0..100 {
            for _ in 0..fastrand::u32(0..60) {
                adapters[fastrand::usize(..2)].serve(now, fastrand::u64(..));
                now += Duration::from_millis(fastrand::u64(0..10));
            }
            pair.cable.lock().set_cable(false);
            if fastrand::bool() {
                adapters[fastrand::usize(..2)].serve(now, fastrand::u64(..));
            }
            pair.cable.lock().set_cable(true);
        }
        // Both know of the latest loss, and come up again.
        for _ in 0..2 {
            serve(&adapters, now);
        }
        serve_until_up(&adapters, now);
        for end in End::BOTH {
            let counts = pair.cable.lock().counts(end);
            assert_eq!((counts.misunderstood, counts.window_reads), (0, 0), "{counts:?}");
        }
    }
}
