//! Drivers of NTB chips over register models: start, windows, events and faults. The tests of all ports are in
//! `tests/port_conformance`, which runs over the same models.

mod agent;
mod alarms;
mod amd;
#[path = "../common/mod.rs"]
mod common;
mod every_chip;
mod icx;
mod ivshmem;
mod plx;
mod skx;

use ntbring_memory::Region;
use ntbring_models::{Cable, End, Model, Plugged};
use ntbring_ntb::PortIndex;
use ntbring_pci::{identify, Adapter, Chip, PciAddress, PciError, Space};
use std::sync::Arc;

/// The functions at both ends of a cable.
struct Pair {
    cable: Cable,
    functions: [Arc<Plugged>; 2],
}

impl Pair {
    fn new(cable: Cable) -> Pair {
        let address = |bus| PciAddress { domain: 0, bus, device: 0, function: 0 };
        let functions = End::BOTH.map(|end| Plugged::new(&cable, end, address(5 + end as u8)));
        Pair { cable, functions }
    }

    /// Changes registers of a function as a BIOS would.
    fn configure(&self, end: End, space: Space, offset: u64, value: u64, len: usize) {
        self.cable.lock().configure(end, space, offset, value, len);
    }

    fn chip(&self, end: End) -> Result<Arc<dyn Chip>, PciError> {
        identify(self.functions[end as usize].clone())
    }

    /// Returns the driver of a function, whose link is enabled and into whose memory, the given one unless it is the
    /// device's, the neighbour may write.
    fn started(&self, end: End, memory: &Region) -> Arc<dyn Chip> {
        let chip = self.chip(end).unwrap();
        chip.initialize().unwrap();
        let iova = 5 * chip.limits().iova_align;
        if chip.limits().memory.is_none() {
            chip.function().map_memory(memory, iova).unwrap();
        }
        chip.function().set_bus_master(true);
        chip.set_translation(iova, memory.len() as u64).unwrap();
        chip.enable_link().unwrap();
        chip
    }

    fn refusal(&self, end: End) -> String {
        self.chip(end).err().expect("the driver refuses it").to_string()
    }
}

/// Checks that the drivers have made no access that a chip misunderstands.
impl Drop for Pair {
    fn drop(&mut self) {
        let misunderstood = End::BOTH.map(|end| self.cable.lock().counts(end).misunderstood);
        assert!(std::thread::panicking() || misunderstood == [0; 2], "accesses of the wrong width: {misunderstood:?}");
    }
}

#[test]
fn functions_of_other_kinds_are_refused() {
    let pair = Pair::new(Model::Skx.cable(1 << 20));
    pair.configure(End::A, Space::Config, 0, 0x1234_8086, 4);
    let refusal = pair.refusal(End::A);
    assert!(
        refusal.contains("8086:1234") && refusal.contains("no NTB adapter; ntbring has a driver for Intel"),
        "{refusal}"
    );
    pair.configure(End::A, Space::Config, 0, 0x8531_11f8, 4);
    assert!(pair.refusal(End::A).contains("Microsemi Switchtec NTB; ntbring has a driver for"));
    for id in [0x3c0d_8086, 0x6f0d_8086] {
        pair.configure(End::A, Space::Config, 0, id, 4);
        assert!(pair.refusal(End::A).contains("use it with Linux's driver ntb_hw_intel"));
    }
    let pair = Pair::new(Model::Skx.cable(1 << 20));
    pair.configure(End::A, Space::Config, 0, u32::MAX.into(), 4);
    assert!(pair.refusal(End::A).contains("is gone"));
}

#[test]
fn windows_that_are_too_small_are_refused_with_the_remedy() {
    let pair = Pair::new(Model::Skx.cable(1 << 20));
    let open = |size: u64| Adapter::open(pair.chip(End::A).unwrap(), PortIndex::ALL[0], 1, size);
    for size in [0, 4096, 32 << 10] {
        let refusal = open(size).err().expect("too small").to_string();
        assert!(refusal.contains("at least 65536 are needed") && refusal.contains("4 MiB or more"), "{refusal}");
    }
    assert!(open(64 << 10).is_ok());
}
