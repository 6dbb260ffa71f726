//! Numbers of ports.

use std::fmt;

/// Number of a port of a host, less than [`PortIndex::MAX_PORTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortIndex(u8);

impl PortIndex {
    /// Maximum number of ports of a host.
    pub const MAX_PORTS: usize = 4;

    /// All numbers, in ascending order.
    pub const ALL: [PortIndex; PortIndex::MAX_PORTS] = [PortIndex(0), PortIndex(1), PortIndex(2), PortIndex(3)];

    /// Returns the port with this number; None if it is too large.
    pub fn new(index: u8) -> Option<PortIndex> {
        PortIndex::ALL.get(usize::from(index)).copied()
    }

    /// Returns the number.
    pub fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for PortIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The ports that a host uses: one to four different ones, in an order that the host chooses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PortList {
    /// The ports, followed by zeros.
    ports: [PortIndex; PortIndex::MAX_PORTS],
    len: usize,
}

impl PortList {
    /// The ports 0 and 1.
    pub const DEFAULT: PortList = PortList { ports: [PortIndex(0), PortIndex(1), PortIndex(0), PortIndex(0)], len: 2 };

    /// Returns the list of these ports; None if there is no port, too many, or one of them twice.
    pub fn new(list: &[PortIndex]) -> Option<PortList> {
        let repeated = list.iter().enumerate().any(|(i, port)| list[..i].contains(port));
        let mut ports = [PortIndex(0); PortIndex::MAX_PORTS];
        let of_list = ports.get_mut(..list.len()).filter(|places| !places.is_empty() && !repeated)?;
        of_list.copy_from_slice(list);
        Some(PortList { ports, len: list.len() })
    }

    /// Returns the ports in their order.
    pub fn ports(&self) -> &[PortIndex] {
        &self.ports[..self.len]
    }

    /// Returns the position of a port in the list; None if the host does not use it.
    pub fn position(&self, port: PortIndex) -> Option<usize> {
        self.ports().iter().position(|&other| other == port)
    }

    /// Returns the list as a number: byte n is the n-th port's number plus 1, or 0 after the last port.
    pub fn code(&self) -> u32 {
        self.ports().iter().rev().fold(0, |code, port| code << 8 | u32::from(port.0 + 1))
    }

    /// Returns the list with a code; None if no list has it.
    pub fn of_code(code: u32) -> Option<PortList> {
        let bytes = code.to_le_bytes();
        let len = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        let ports: Option<Vec<PortIndex>> = bytes[..len].iter().map(|&byte| PortIndex::new(byte - 1)).collect();
        PortList::new(&ports?).filter(|list| list.code() == code)
    }
}

impl Default for PortList {
    fn default() -> PortList {
        PortList::DEFAULT
    }
}

impl fmt::Display for PortList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.ports().iter().map(PortIndex::to_string).collect();
        f.write_str(&numbers.join(", "))
    }
}

impl fmt::Debug for PortList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PortList({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(numbers: &[usize]) -> Option<PortList> {
        PortList::new(&numbers.iter().map(|&number| PortIndex::ALL[number]).collect::<Vec<_>>())
    }

    #[test]
    fn a_port_has_a_number_below_four() {
        assert_eq!((0..=255).filter_map(PortIndex::new).map(PortIndex::get).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn a_list_has_one_to_four_different_ports() {
        for good in [&[3][..], &[0, 1], &[3, 2], &[1, 3, 0, 2]] {
            let list = list(good).unwrap();
            assert_eq!(PortList::of_code(list.code()), Some(list));
            for (position, &number) in good.iter().enumerate() {
                assert_eq!(list.position(PortIndex::ALL[number]), Some(position));
            }
        }
        for bad in [&[][..], &[1, 1], &[0, 1, 0], &[0, 1, 2, 3, 0]] {
            assert_eq!(list(bad), None, "{bad:?}");
        }
        assert_eq!(list(&[0, 1]), Some(PortList::default()));
        assert_eq!(list(&[2, 3]).unwrap().position(PortIndex::ALL[0]), None);
        assert_eq!(list(&[2, 0]).unwrap().to_string(), "2, 0");
    }

    #[test]
    fn codes_of_no_list_are_refused() {
        for code in [0, 0x0101, 5, 0x0100, 0x02_0001, u32::MAX] {
            assert_eq!(PortList::of_code(code), None, "{code:x}");
        }
    }
}
