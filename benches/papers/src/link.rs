//! An emulated NTB link: two hosts, port 1 of the first cabled to port 0 of the second.

use crate::Error;
use ntbring_emu::{EmuHost, MemoryLayout};
use ntbring_memory::{InWindow, OutWindow};
use ntbring_ntb::fabric::{Fabric, FabricAddress, PortAddress, Windows};
use ntbring_ntb::split::split;
use ntbring_ntb::timing::{Model, Timing};
use ntbring_ntb::{Port, PortIndex, PortList};
use std::path::Path;

/// Directory of the windows' memory.
const DIR: &str = "/dev/shm";
const PAGE: usize = 4096;

/// The end of the cable at which a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The cable is in its port 1.
    First,
    /// The cable is in its port 0.
    Second,
}

/// A host with its memory that is not joined to another one yet.
pub struct Host {
    memory: EmuHost,
    layout: MemoryLayout,
    model: Option<Model>,
}

/// A joined host. The windows are valid as long as it exists.
pub struct Joined {
    /// This host's window, which the peer writes.
    pub own: InWindow,
    /// The peer's window.
    pub peer: OutWindow,
    _memory: EmuHost,
}

/// Returns the link model with that name or those values; None for `none`.
pub fn model(text: &str) -> Result<Option<Model>, Error> {
    Model::parse(text).map_err(|problem| Error::Argument(format!("link model {text:?}: {problem}")))
}

impl Host {
    /// Creates a host with windows of at least that many bytes and links with the costs of that model.
    pub fn create(window: usize, model: Option<Model>) -> Result<Host, Error> {
        let windows = Windows {
            bytes: window.next_multiple_of(PAGE) as u64,
            accounts: model.is_some(),
            ports: PortList::default(),
        };
        let memory = EmuHost::create(Path::new(DIR), windows).map_err(ntbring_ntb::NtbError::from)?;
        Ok(Host { memory, layout: MemoryLayout::of(windows), model })
    }

    /// Returns the address of this host for the other one, as text.
    pub fn address(&self) -> String {
        self.memory.address().0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Joins this host to the one at an address, which has windows of the same size and the same link model.
    pub fn join(self, place: Place, address: &str) -> Result<Joined, Error> {
        let host = parse(address)?;
        let [zero, one, ..] = PortIndex::ALL;
        let port = |own, opposite| self.memory.soft_port(own, &PortAddress { host, port: opposite });
        let ports = [port(zero, one)?, port(one, zero)?];
        let port: Box<dyn Port> = match self.model {
            None => {
                let [at_zero, at_one] = ports;
                Box::new(if place == Place::First { at_one } else { at_zero })
            }
            Some(model) => {
                let [at_zero, at_one] = Timing::pair(ports, model)?;
                Box::new(if place == Place::First { at_one } else { at_zero })
            }
        };
        let opposite = if place == Place::First { zero } else { one };
        let offset = self.layout.window_offset(opposite).expect("the peer uses the same ports");
        let peer = port.outgoing(offset, self.layout.window)?;
        let peer = match port.caps().max_transfer {
            Some(max) => split(peer, max),
            None => peer,
        };
        Ok(Joined { own: port.incoming(), peer, _memory: self.memory })
    }
}

fn parse(address: &str) -> Result<FabricAddress, Error> {
    let digits = address.trim();
    let byte = |i: usize| u8::from_str_radix(digits.get(2 * i..2 * i + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..FabricAddress::LEN).map(byte).collect();
    let bytes = bytes.filter(|_| digits.len() == 2 * FabricAddress::LEN).and_then(|bytes| bytes.try_into().ok());
    bytes.map(FabricAddress).ok_or_else(|| Error::Argument(format!("{digits:?} is not the address of a host")))
}

/// Returns two joined hosts in one process, for tests.
pub fn pair(window: usize, model: Option<Model>) -> Result<[Joined; 2], Error> {
    let (first, second) = (Host::create(window, model)?, Host::create(window, model)?);
    let (at_first, at_second) = (first.address(), second.address());
    Ok([first.join(Place::First, &at_second)?, second.join(Place::Second, &at_first)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_back_and_others_refused() {
        let host = Host::create(PAGE, None).unwrap();
        assert_eq!(parse(&host.address()).unwrap(), host.memory.address());
        for text in ["", "00", &"zz".repeat(FabricAddress::LEN), &"00".repeat(FabricAddress::LEN + 1)] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(model("gen9").is_err() && model("none").unwrap().is_none());
    }

    #[test]
    fn each_host_sees_what_the_other_writes() {
        for text in ["none", "gen3x8", "pex8733,transfer=1K"] {
            let [a, b] = pair(1 << 16, model(text).unwrap()).unwrap();
            for (from, to) in [(&a, &b), (&b, &a)] {
                from.peer.write_bytes(64, &[7; 5000]);
                from.peer.fence();
                from.peer.store(0, 9);
                while to.own.load(0) != 9 {}
                let mut found = [0; 5000];
                to.own.read(64, &mut found);
                assert_eq!(found, [7; 5000], "{text}");
            }
        }
    }
}
