//! The greeting: parameters that two neighbours exchange, and their comparison.

use crate::protocol::PROTOCOL_VERSION;
use ntbring_ntb::timing::Model;
use ntbring_ntb::Shortcuts;
use ntbring_queue::Reliability;

const MAGIC: u32 = 0x4e54; // "NT"

/// Name, in error texts, of the compared value that is not a single setting.
pub(super) const SHORTCUTS: &str =
    "the shortcuts between them (NTBRING_SHORTCUTS; NTBRING_WEAK, NTBRING_FAULT and NTBRING_LINK_MODEL exclude most)";
/// Bits of word 5 that hold the chunk size.
pub(super) const CHUNK_BITS: u32 = 24;
/// First of five bits of word 5 that hold the code of the shortcuts.
const SHORTCUTS_BIT: u32 = 27;

/// First of 20 bits of word 6 that hold the keep-alive timeout, after the number of doorbells.
const KEEPALIVE_BIT: u32 = 8;
/// First of two bits each of word 6 that hold the numbers of the sender's port and of the opposite port.
const PORT_BITS: [u32; 2] = [28, 30];

/// Number of words of an encoded greeting.
pub(super) const WORDS: usize = 8;

/// Unit of window sizes and offsets in a greeting, bytes.
pub const OFFSET_UNIT: u64 = 4096;

/// Parameters that a host sends to its neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Protocol version.
    pub version: u16,
    /// The sender's host number in the ring.
    pub host: u16,
    /// Number of hosts in the ring.
    pub hosts: u16,
    /// Number of ranks on the sender's host.
    pub ranks: u16,
    /// Size of the sender's incoming window, bytes (a multiple of 4096).
    pub window: u64,
    /// Offset of that window in the sender's memory, bytes (a multiple of 4096).
    pub offset: u64,
    /// Largest chunk of a message, bytes; 0: `auto`.
    pub chunk: u32,
    /// Digest of the link model; 0 if there is none.
    pub link_model: u16,
    /// Code of the reliability level; at most 7.
    pub reliability: u8,
    /// The shortcuts that the sender's port grants and its settings permit.
    pub shortcuts: Shortcuts,
    /// Number of doorbells of the adapter that are used; at most 255.
    pub doorbells: u16,
    /// Time without a keep-alive after which a host counts as lost, seconds; less than 2^20.
    pub keepalive_timeout: u32,
    /// Number of the sender's port, 0 to 3.
    pub port: u8,
    /// Number of the port to which the sender's port should be cabled, 0 to 3.
    pub opposite: u8,
}

/// Reasons for which the handshake of two neighbours fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// A value that must be the same on both sides is not.
    #[error("host {host} and its neighbour host {neighbour} disagree on {what}: {mine} here, {theirs} there")]
    Disagree {
        /// This host.
        host: u16,
        /// The neighbour.
        neighbour: u16,
        /// The setting or fact.
        what: &'static str,
        /// This host's value.
        mine: String,
        /// The neighbour's value.
        theirs: String,
    },
    /// Another host is at the other end of the cable.
    #[error("host {host} expects host {expected} on this link, but host {found} is there")]
    WrongHost {
        /// This host.
        host: u16,
        /// Number of the expected host.
        expected: u16,
        /// Number of the host that was found.
        found: u16,
    },
    /// Another port of the expected host is at the other end of the cable.
    #[error(
        "port {port} of host {host} should be cabled to port {expected} of host {neighbour}, but port {found} is there \
         (NTBRING_PORTS)"
    )]
    WrongPort {
        /// This host.
        host: u16,
        /// Its port.
        port: u8,
        /// The neighbour.
        neighbour: u16,
        /// Number of the neighbour's port that was expected.
        expected: u8,
        /// Number of the port that was found.
        found: u8,
    },
    /// The registers do not hold a valid greeting.
    #[error("host {host}: its neighbour host {expected} wrote an invalid greeting into the scratchpads ({what})")]
    Nonsense {
        /// This host.
        host: u16,
        /// Number of the expected host.
        expected: u16,
        /// The defect that was found.
        what: &'static str,
    },
    /// The neighbour has refused, and this side found no reason itself.
    #[error("host {neighbour} has refused the handshake with host {host}")]
    Refused {
        /// This host.
        host: u16,
        /// The neighbour.
        neighbour: u16,
    },
}

impl Greeting {
    /// Encodes the greeting.
    pub(super) fn words(&self) -> [u32; WORDS] {
        let mut words = [
            MAGIC << 16 | u32::from(self.version),
            u32::from(self.host) << 16 | u32::from(self.hosts),
            u32::from(self.link_model) << 16 | u32::from(self.ranks),
            (self.window / OFFSET_UNIT) as u32,
            (self.offset / OFFSET_UNIT) as u32,
            u32::from(self.shortcuts.code()) << SHORTCUTS_BIT | u32::from(self.reliability) << CHUNK_BITS | self.chunk,
            u32::from(self.opposite) << PORT_BITS[1]
                | u32::from(self.port) << PORT_BITS[0]
                | self.keepalive_timeout << KEEPALIVE_BIT
                | u32::from(self.doorbells),
            0,
        ];
        words[WORDS - 1] = checksum(&words);
        words
    }

    /// Decodes a greeting. Returns a description of the defect if the words are not one.
    pub(super) fn parse(words: &[u32; WORDS]) -> Result<Greeting, &'static str> {
        if words[0] >> 16 != MAGIC {
            return Err("the magic number is missing");
        }
        if words[WORDS - 1] != checksum(words) {
            return Err("the checksum is wrong");
        }
        Ok(Greeting {
            version: words[0] as u16,
            host: (words[1] >> 16) as u16,
            hosts: words[1] as u16,
            ranks: words[2] as u16,
            window: u64::from(words[3]) * OFFSET_UNIT,
            offset: u64::from(words[4]) * OFFSET_UNIT,
            chunk: words[5] & ((1 << CHUNK_BITS) - 1),
            reliability: (words[5] >> CHUNK_BITS) as u8 & 7,
            shortcuts: Shortcuts::of_code((words[5] >> SHORTCUTS_BIT) as u8),
            link_model: (words[2] >> 16) as u16,
            doorbells: u16::from(words[6] as u8),
            keepalive_timeout: words[6] >> KEEPALIVE_BIT & ((1 << (PORT_BITS[0] - KEEPALIVE_BIT)) - 1),
            port: (words[6] >> PORT_BITS[0]) as u8 & 3,
            opposite: (words[6] >> PORT_BITS[1]) as u8,
        })
    }

    /// Compares the greeting of the neighbour, which should be host `expected`, with this host's own.
    pub(super) fn judge(&self, g: Greeting, expected: u16) -> Result<Greeting, HandshakeError> {
        let mine = self;
        if g.version == mine.version && g.host != expected {
            return Err(HandshakeError::WrongHost { host: mine.host, expected, found: g.host });
        }
        if g.version == mine.version && g.port != mine.opposite {
            let (host, port, neighbour) = (mine.host, mine.port, expected);
            return Err(HandshakeError::WrongPort { host, port, neighbour, expected: mine.opposite, found: g.port });
        }
        type Show = fn(u64) -> String;
        let (number, model): (Show, Show) = (|n| n.to_string(), |digest| Model::name_of(digest as u16));
        let chunk: Show = |n| if n == 0 { "auto".into() } else { n.to_string() };
        let reliability: Show = |code| Reliability::name_of(code as u8);
        let shortcuts: Show = |code| Shortcuts::of_code(code as u8).to_string();
        let pairs: [(_, u64, u64, Show); 9] = [
            ("the protocol version", mine.version.into(), g.version.into(), number),
            ("the number of hosts", mine.hosts.into(), g.hosts.into(), number),
            ("NTBRING_CHUNK", mine.chunk.into(), g.chunk.into(), chunk),
            ("NTBRING_LINK_MODEL", mine.link_model.into(), g.link_model.into(), model),
            ("NTBRING_RELIABILITY", mine.reliability.into(), g.reliability.into(), reliability),
            // Compared after the settings from which the default window size follows.
            ("NTBRING_WINDOW", mine.window, g.window, number),
            ("the number of doorbells of their adapters", mine.doorbells.into(), g.doorbells.into(), number),
            ("NTBRING_KEEPALIVE_TIMEOUT", mine.keepalive_timeout.into(), g.keepalive_timeout.into(), number),
            (SHORTCUTS, mine.shortcuts.code().into(), g.shortcuts.code().into(), shortcuts),
        ];
        for (what, mine_value, theirs, show) in pairs {
            if mine_value != theirs {
                let (host, neighbour) = (mine.host, expected);
                let (mine, theirs) = (show(mine_value), show(theirs));
                return Err(HandshakeError::Disagree { host, neighbour, what, mine, theirs });
            }
        }
        Ok(g)
    }
}

fn checksum(words: &[u32; WORDS]) -> u32 {
    words.iter().take(WORDS - 1).fold(0x811c_9dc5, |sum, &r| (sum ^ r).wrapping_mul(0x0100_0193).rotate_left(5))
}

impl Default for Greeting {
    fn default() -> Self {
        Greeting {
            version: PROTOCOL_VERSION,
            host: 0,
            hosts: 0,
            ranks: 0,
            window: 0,
            offset: 0,
            chunk: 0,
            link_model: 0,
            reliability: 0,
            shortcuts: Shortcuts::ALL,
            doorbells: 16,
            keepalive_timeout: 60,
            port: 0,
            opposite: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn greetings_survive_their_words(host in 0u16..64, ranks: u16, window in 0u32..1 << 18, offset in 0u32..1 << 18, chunk in 0u32..1 << CHUNK_BITS, link_model: u16, reliability in 0u8..8, shortcuts in 0u8..32, doorbells in 1u16..=16, keepalive_timeout in 0u32..1 << 20, port in 0u8..4, opposite in 0u8..4) {
            let g = Greeting {
                host, ranks, chunk, link_model, reliability, shortcuts: Shortcuts::of_code(shortcuts), hosts: 64, doorbells, port, opposite,
                keepalive_timeout,
                window: u64::from(window) * OFFSET_UNIT,
                offset: u64::from(offset) * OFFSET_UNIT,
                ..Default::default()
            };
            prop_assert_eq!(Greeting::parse(&g.words()), Ok(g));
            let mut words = g.words();
            words[usize::from(host) % WORDS] ^= 1 << (ranks % 32);
            prop_assert!(Greeting::parse(&words).is_err());
        }
    }
}
