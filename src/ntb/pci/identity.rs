//! The address and the identity of a PCI function.

use crate::registers::{Block, Registers, Space};
use std::fmt;

/// The bus address of a function, such as `0000:05:00.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PciAddress {
    /// PCI domain (segment).
    pub domain: u32,
    /// Bus number.
    pub bus: u8,
    /// Device number, less than 32.
    pub device: u8,
    /// Function number, less than 8.
    pub function: u8,
}

impl PciAddress {
    /// Parses `DDDD:BB:DD.F` or `BB:DD.F` in hexadecimal digits; None if the text has neither form.
    pub fn parse(text: &str) -> Option<PciAddress> {
        let (rest, function) = text.rsplit_once('.')?;
        let (rest, device) = rest.rsplit_once(':')?;
        let (domain, bus) = rest.rsplit_once(':').unwrap_or(("0", rest));
        let hex = |digits: &str, most: usize, below: u32| {
            let plain = (1..=most).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let value = plain.then(|| u32::from_str_radix(digits, 16).ok()).flatten()?;
            (value < below).then_some(value)
        };
        Some(PciAddress {
            domain: hex(domain, 8, u32::MAX)?,
            bus: hex(bus, 2, 256)? as u8,
            device: hex(device, 2, 32)? as u8,
            function: hex(function, 1, 8)? as u8,
        })
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{}", self.domain, self.bus, self.device, self.function)
    }
}

/// The identity of a function, as its configuration space shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Bus address.
    pub address: PciAddress,
    /// Vendor id.
    pub vendor: u16,
    /// Device id.
    pub device: u16,
    /// Revision.
    pub revision: u8,
    /// Class code, 24 bits: class, subclass, programming interface.
    pub class: u32,
}

impl Identity {
    /// Reads the identity of the function at `address` from its configuration space.
    pub fn read<R: Registers + ?Sized>(registers: &R, address: PciAddress) -> Identity {
        let config = Block::new(registers, Space::Config);
        let (id, class) = (config.read32(0), config.read32(8));
        Identity { address, vendor: id as u16, device: (id >> 16) as u16, revision: class as u8, class: class >> 8 }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:04x}:{:04x}, revision {:02x})", self.address, self.vendor, self.device, self.revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_alike() {
        for (text, written) in
            [("0000:05:00.0", "0000:05:00.0"), ("3b:1f.7", "0000:3b:1f.7"), ("10000:1:2.3", "10000:01:02.3")]
        {
            assert_eq!(PciAddress::parse(text).unwrap().to_string(), written);
        }
        for bad in [
            "",
            "5",
            "05:00",
            "05:20.0",
            "05:00.8",
            "100:00.0",
            "x:05:00.0",
            "0:0:5:0.0",
            "+5:00.0",
            "05:00.",
            "-1:05:00.0",
        ] {
            assert_eq!(PciAddress::parse(bad), None, "{bad}");
        }
    }
}
