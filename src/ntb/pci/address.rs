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
