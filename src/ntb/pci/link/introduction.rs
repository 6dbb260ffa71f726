//! The introduction of a host to its neighbour, before any window is used.

use ntbring_ntb::PortIndex;

/// Number of 32-bit parts of an introduction; the last one is a checksum.
pub(super) const PARTS: usize = 5;

/// Unit of the size of a window in an introduction, bytes.
const UNIT: u64 = 4096;

/// The facts that a host tells its neighbour about itself and its end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// Identity of the host: a random number that it has chosen.
    pub host: u64,
    /// Number of the port in which the cable is.
    pub port: PortIndex,
    /// Number of doorbells of this host that the neighbour may ring.
    pub doorbells: u8,
    /// Number of bytes that the neighbour may write, from the start of its window; a multiple of 4096.
    pub bytes: u64,
}

impl Introduction {
    /// Returns the parts, for a bring-up of this generation.
    pub(super) fn parts(&self, generation: u16) -> [u32; PARTS] {
        let ends = u32::from(self.port.get()) << 8 | u32::from(self.doorbells);
        let units = u32::try_from(self.bytes / UNIT).unwrap_or(u32::MAX);
        let facts = [self.host as u32, (self.host >> 32) as u32, ends, units];
        let [low, high, ends, units] = facts;
        [low, high, ends, units, checksum(&facts, generation)]
    }

    /// Returns the introduction with these parts; None if there is none: a part was lost, or another program has
    /// written them.
    pub(super) fn parse(parts: &[u32; PARTS], generation: u16) -> Option<Introduction> {
        let &[low, high, ends, units, sum] = parts;
        let is_valid = sum == checksum(&[low, high, ends, units], generation) && ends >> 16 == 0 && ends & 0xff != 0;
        let port = PortIndex::new((ends >> 8) as u8).filter(|_| is_valid && units != 0)?;
        let host = u64::from(high) << 32 | u64::from(low);
        Some(Introduction { host, port, doorbells: ends as u8, bytes: u64::from(units) * UNIT })
    }
}

/// Returns the checksum of the facts of an introduction.
fn checksum(facts: &[u32; PARTS - 1], generation: u16) -> u32 {
    facts
        .iter()
        .fold(crc32c::crc32c(&generation.to_le_bytes()), |sum, fact| crc32c::crc32c_append(sum, &fact.to_le_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn introductions_are_encoded_without_loss() {
        for port in PortIndex::ALL {
            let one = Introduction { host: 0x0123_4567_89ab_cdef, port, doorbells: 15, bytes: 4 << 30 };
            assert_eq!(Introduction::parse(&one.parts(7), 7), Some(one));
            assert_eq!(Introduction::parse(&one.parts(7), 8), None, "the generation is part of the checksum");
        }
        for [low, high, ends, units] in [[1, 1, 0x0400 | 15, 1], [1, 1, 0x0100, 1], [1, 1, 0x1_0001, 1], [1, 1, 1, 0]] {
            let sum = checksum(&[low, high, ends, units], 7);
            assert_eq!(Introduction::parse(&[low, high, ends, units, sum], 7), None, "{ends:x} {units}");
        }
    }
}
