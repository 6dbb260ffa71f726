//! The address of a job's windows on a host with adapters.

use bytes::{Buf, BufMut};
use ntbring_ntb::fabric::FabricAddress;
use ntbring_ntb::{PortIndex, PortList};

/// The address of a job's windows on a host with adapters, in the form in which it travels between hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceAddress {
    /// Identity of the host.
    pub host: u64,
    /// The key of the job's slices on this host, a random number.
    pub key: u64,
    /// Page number of the slice in the window of each port; 0: the host does not use the port.
    pub pages: [u32; PortIndex::MAX_PORTS],
}

impl SliceAddress {
    /// Returns the ports that the host uses, in ascending order.
    pub fn ports(&self) -> Option<PortList> {
        let used = PortIndex::ALL.into_iter().filter(|port| self.pages[usize::from(port.get())] != 0);
        PortList::new(&used.collect::<Vec<_>>())
    }

    /// Returns the offset of the slice in the window of a port, bytes; None if the host does not use the port.
    pub fn offset(&self, port: PortIndex) -> Option<u64> {
        let page = self.pages[usize::from(port.get())];
        (page != 0).then_some(u64::from(page) * crate::allotment::PAGE)
    }

    /// Encodes the address.
    pub fn encode(&self) -> FabricAddress {
        let mut address = FabricAddress([0; FabricAddress::LEN]);
        let mut to = &mut address.0[..];
        to.put_u64_le(self.host);
        to.put_u64_le(self.key);
        self.pages.iter().for_each(|&page| to.put_u32_le(page));
        address
    }

    /// Decodes an address.
    pub fn decode(address: &FabricAddress) -> SliceAddress {
        let mut from = &address.0[..];
        let (host, key) = (from.get_u64_le(), from.get_u64_le());
        SliceAddress { host, key, pages: std::array::from_fn(|_| from.get_u32_le()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_encoded_without_loss() {
        let address = SliceAddress { host: u64::MAX - 1, key: 7, pages: [1, 0, 3, u32::MAX] };
        assert_eq!(SliceAddress::decode(&address.encode()), address);
        let [zero, one, two, three] = PortIndex::ALL;
        assert_eq!(address.ports(), PortList::new(&[zero, two, three]));
        assert_eq!((address.offset(two), address.offset(one)), (Some(3 * 4096), None));
    }
}
