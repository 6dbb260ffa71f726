//! The address of a job's windows on a host with adapters.

use bytes::{Buf, BufMut};
use ntbring_ntb::fabric::FabricAddress;
use ntbring_ntb::PortList;

/// The address of a job's windows on a host with adapters, in the form in which it travels between hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceAddress {
    /// Identity of the host.
    pub host: u64,
    /// The key of the job's slices on this host, a random number.
    pub key: u64,
    /// The ports that the job uses on this host.
    pub ports: PortList,
}

impl SliceAddress {
    /// Encodes the address.
    pub fn encode(&self) -> FabricAddress {
        let mut address = FabricAddress([0; FabricAddress::LEN]);
        let mut to = &mut address.0[..];
        to.put_u64_le(self.host);
        to.put_u64_le(self.key);
        to.put_u32_le(self.ports.code());
        address
    }

    /// Decodes an address; None if it is none.
    pub fn decode(address: &FabricAddress) -> Option<SliceAddress> {
        let mut from = &address.0[..];
        let (host, key) = (from.get_u64_le(), from.get_u64_le());
        Some(SliceAddress { host, key, ports: PortList::of_code(from.get_u32_le())? })
    }
}

/// Keys of slices: that of the job, with the number of the port.
pub mod slice_key {
    use ntbring_ntb::PortIndex;

    const PORTS: u64 = PortIndex::MAX_PORTS as u64 - 1;

    /// Returns the key of a job, given a random number.
    pub fn job(random: u64) -> u64 {
        (random & !PORTS).max(PORTS + 1)
    }

    /// Returns the key of the slice of a port.
    pub fn of(job: u64, port: PortIndex) -> u64 {
        job & !PORTS | u64::from(port.get())
    }

    /// Returns the key of the job and the port of a slice.
    pub fn split(key: u64) -> Option<(u64, PortIndex)> {
        Some((key & !PORTS, PortIndex::new((key & PORTS) as u8)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ntbring_ntb::PortIndex;

    #[test]
    fn addresses_are_encoded_without_loss() {
        let [zero, _, two, three] = PortIndex::ALL;
        let address = SliceAddress { host: u64::MAX - 1, key: 7, ports: PortList::new(&[three, zero, two]).unwrap() };
        assert_eq!(SliceAddress::decode(&address.encode()), Some(address));
        assert_eq!(SliceAddress::decode(&FabricAddress([0xff; FabricAddress::LEN])), None);
        assert_eq!(SliceAddress::decode(&FabricAddress([0; FabricAddress::LEN])), None);
    }
}
