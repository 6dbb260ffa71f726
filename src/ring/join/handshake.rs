//! Exchange of parameters between two neighbours through the scratchpads, before any window is used.
//!
//! Each side writes its greeting into the other's registers 0 to 6 and then a phase into register 7; it reads only its
//! own registers. The module contains no I/O, clock or thread: its input and its output are register values. (Ids,
//! offsets and sizes through scratchpads: the ring of NTB hosts, HUFS 2019.)

use crate::protocol::PROTOCOL_VERSION;
use ntbring_ntb::timing::Model;
use ntbring_ntb::Shortcuts;
use ntbring_queue::Reliability;

const MAGIC: u32 = 0x4e54; // "NT"

/// Name, in errors, of the compared fact that is no single setting.
const SHORTCUTS: &str =
    "the shortcuts between them (NTBRING_SHORTCUTS; NTBRING_WEAK, NTBRING_FAULT and NTBRING_LINK_MODEL exclude most)";
const PHASE: usize = 7;
/// Bits of register 5 that hold the chunk size.
const CHUNK_BITS: u32 = 24;
/// First of four bits of register 5 that hold the code of the shortcuts.
const SHORTCUTS_BIT: u32 = 27;

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
    fn registers(&self) -> [u32; 7] {
        let mut regs = [
            MAGIC << 16 | u32::from(self.version),
            u32::from(self.host) << 16 | u32::from(self.hosts),
            u32::from(self.link_model) << 16 | u32::from(self.ranks),
            (self.window / OFFSET_UNIT) as u32,
            (self.offset / OFFSET_UNIT) as u32,
            u32::from(self.shortcuts.code()) << SHORTCUTS_BIT | u32::from(self.reliability) << CHUNK_BITS | self.chunk,
            0,
        ];
        regs[6] = checksum(&regs);
        regs
    }

    fn parse(regs: &[u32; 8]) -> Result<Greeting, &'static str> {
        if regs[0] >> 16 != MAGIC {
            return Err("the magic number is missing");
        }
        if regs[6] != checksum(&regs[..6]) {
            return Err("the checksum is wrong");
        }
        Ok(Greeting {
            version: regs[0] as u16,
            host: (regs[1] >> 16) as u16,
            hosts: regs[1] as u16,
            ranks: regs[2] as u16,
            window: u64::from(regs[3]) * OFFSET_UNIT,
            offset: u64::from(regs[4]) * OFFSET_UNIT,
            chunk: regs[5] & ((1 << CHUNK_BITS) - 1),
            reliability: (regs[5] >> CHUNK_BITS) as u8 & 7,
            shortcuts: Shortcuts::of_code((regs[5] >> SHORTCUTS_BIT) as u8),
            link_model: (regs[2] >> 16) as u16,
        })
    }
}

fn checksum(regs: &[u32]) -> u32 {
    regs.iter().take(6).fold(0x811c_9dc5, |sum, &r| (sum ^ r).wrapping_mul(0x0100_0193).rotate_left(5))
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Silent = 0,
    Greeted = 1,
    Agreed = 2,
    Refused = 3,
}

impl Phase {
    fn of(register: u32) -> Option<Phase> {
        [Phase::Silent, Phase::Greeted, Phase::Agreed, Phase::Refused].into_iter().find(|p| *p as u32 == register)
    }
}

/// One side of a handshake.
pub struct Handshake {
    mine: Greeting,
    expected: u16,
    phase: Phase,
    theirs: Option<Greeting>,
}

/// Result of a step.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    /// Registers of the neighbour to be written, as `(register, value)` in this order.
    pub write: Vec<(usize, u32)>,
    /// Progress of the handshake.
    pub outcome: Outcome,
}

/// Progress of a handshake.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Call again when the registers have changed.
    Waiting,
    /// Both sides agree; holds the neighbour's greeting.
    Done(Greeting),
    /// The two sides do not agree.
    Failed(HandshakeError),
}

impl Handshake {
    /// Creates the side that sends the greeting `mine` and expects host `expected` at the other end.
    pub fn new(mine: Greeting, expected: u16) -> Handshake {
        Handshake { mine, expected, phase: Phase::Silent, theirs: None }
    }

    /// Makes one step, given the values of the own registers.
    pub fn step(&mut self, own: &[u32; 8]) -> Step {
        let mut write = Vec::new();
        self.greet(&mut write);
        let Some(theirs) = Phase::of(own[PHASE]) else {
            return self.fail(self.nonsense("unknown phase"), write);
        };
        if theirs == Phase::Silent {
            return Step { write, outcome: Outcome::Waiting };
        }
        if self.theirs.is_none() {
            match Greeting::parse(own).map_err(|what| self.nonsense(what)).and_then(|g| self.judge(g)) {
                Ok(greeting) => self.theirs = Some(greeting),
                Err(error) => return self.fail(error, write),
            }
            self.set(Phase::Agreed, &mut write);
        }
        match (theirs, self.theirs) {
            (Phase::Refused, _) => {
                let error = HandshakeError::Refused { host: self.mine.host, neighbour: self.expected };
                self.fail(error, write)
            }
            (Phase::Agreed, Some(greeting)) => Step { write, outcome: Outcome::Done(greeting) },
            _ => Step { write, outcome: Outcome::Waiting },
        }
    }

    /// Returns the registers to be written if this side gives up for a reason that the neighbour cannot know, so that
    /// the neighbour does not wait.
    pub fn refuse(&mut self) -> Vec<(usize, u32)> {
        let mut write = Vec::new();
        self.greet(&mut write);
        self.set(Phase::Refused, &mut write);
        write
    }

    fn greet(&mut self, write: &mut Vec<(usize, u32)>) {
        if self.phase == Phase::Silent {
            write.extend(self.mine.registers().into_iter().enumerate());
            self.set(Phase::Greeted, write);
        }
    }

    fn set(&mut self, phase: Phase, write: &mut Vec<(usize, u32)>) {
        self.phase = phase;
        write.push((PHASE, phase as u32));
    }

    fn fail(&mut self, error: HandshakeError, mut write: Vec<(usize, u32)>) -> Step {
        self.set(Phase::Refused, &mut write);
        Step { write, outcome: Outcome::Failed(error) }
    }

    fn nonsense(&self, what: &'static str) -> HandshakeError {
        HandshakeError::Nonsense { host: self.mine.host, expected: self.expected, what }
    }

    fn judge(&self, g: Greeting) -> Result<Greeting, HandshakeError> {
        let mine = &self.mine;
        if g.version == mine.version && g.host != self.expected {
            return Err(HandshakeError::WrongHost { host: mine.host, expected: self.expected, found: g.host });
        }
        type Show = fn(u64) -> String;
        let (number, model): (Show, Show) = (|n| n.to_string(), |digest| Model::name_of(digest as u16));
        let chunk: Show = |n| if n == 0 { "auto".into() } else { n.to_string() };
        let reliability: Show = |code| Reliability::name_of(code as u8);
        let shortcuts: Show = |code| Shortcuts::of_code(code as u8).to_string();
        let pairs: [(_, u64, u64, Show); 7] = [
            ("the protocol version", mine.version.into(), g.version.into(), number),
            ("the number of hosts", mine.hosts.into(), g.hosts.into(), number),
            ("NTBRING_CHUNK", mine.chunk.into(), g.chunk.into(), chunk),
            ("NTBRING_LINK_MODEL", mine.link_model.into(), g.link_model.into(), model),
            ("NTBRING_RELIABILITY", mine.reliability.into(), g.reliability.into(), reliability),
            // Compared after the settings from which the default window size follows.
            ("NTBRING_WINDOW", mine.window, g.window, number),
            (SHORTCUTS, mine.shortcuts.code().into(), g.shortcuts.code().into(), shortcuts),
        ];
        for (what, mine_value, theirs, show) in pairs {
            if mine_value != theirs {
                let (host, neighbour) = (mine.host, self.expected);
                let (mine, theirs) = (show(mine_value), show(theirs));
                return Err(HandshakeError::Disagree { host, neighbour, what, mine, theirs });
            }
        }
        Ok(g)
    }
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn greeting(host: u16) -> Greeting {
        Greeting { host, hosts: 4, ranks: 2, window: 1 << 20, offset: 4096, chunk: 16384, ..Default::default() }
    }

    /// Steps both sides in turn until both have an outcome.
    fn shake(a: Greeting, b: Greeting) -> (Outcome, Outcome) {
        let mut sides = [Handshake::new(a, 1), Handshake::new(b, 0)];
        let mut regs = [[0u32; 8]; 2];
        let mut outcomes = [Outcome::Waiting, Outcome::Waiting];
        for turn in 0..20 {
            let i = turn % 2;
            if outcomes[i] == Outcome::Waiting {
                let step = sides[i].step(&regs[i]);
                for (r, v) in step.write {
                    regs[1 - i][r] = v;
                }
                outcomes[i] = step.outcome;
            }
        }
        let [x, y] = outcomes;
        (x, y)
    }

    #[test]
    fn neighbours_learn_each_others_greeting() {
        assert_eq!(shake(greeting(0), greeting(1)), (Outcome::Done(greeting(1)), Outcome::Done(greeting(0))));
    }

    #[test]
    fn a_difference_is_named_on_both_sides() {
        for (other, what) in [
            (Greeting { window: 2 << 20, ..greeting(1) }, "NTBRING_WINDOW"),
            (Greeting { chunk: 64, ..greeting(1) }, "NTBRING_CHUNK"),
            (Greeting { link_model: 7, ..greeting(1) }, "NTBRING_LINK_MODEL"),
            (Greeting { reliability: 2, ..greeting(1) }, "NTBRING_RELIABILITY"),
            (Greeting { shortcuts: Shortcuts::ALL.past_links(), ..greeting(1) }, SHORTCUTS),
            (Greeting { version: PROTOCOL_VERSION + 1, ..greeting(1) }, "the protocol version"),
            (Greeting { hosts: 5, ..greeting(1) }, "the number of hosts"),
        ] {
            let (x, y) = shake(greeting(0), other);
            for outcome in [x, y] {
                match outcome {
                    Outcome::Failed(HandshakeError::Disagree { what: w, .. }) => assert_eq!(w, what),
                    other => panic!("{what}: {other:?}"),
                }
            }
        }
        let (x, _) = shake(greeting(0), greeting(3));
        assert_eq!(x, Outcome::Failed(HandshakeError::WrongHost { host: 0, expected: 1, found: 3 }));
    }

    #[test]
    fn who_gives_up_keeps_nobody_waiting() {
        let (mut a, mut b) = (Handshake::new(greeting(0), 1), Handshake::new(greeting(1), 0));
        let mut regs = [0; 8];
        assert_eq!(b.step(&regs).outcome, Outcome::Waiting);
        for (r, v) in a.refuse() {
            regs[r] = v;
        }
        let refused = HandshakeError::Refused { host: 1, neighbour: 0 };
        assert_eq!(b.step(&regs).outcome, Outcome::Failed(refused));
    }

    proptest! {
        #[test]
        fn arbitrary_registers_never_panic_and_rarely_pass(regs: [u32; 8]) {
            let mut side = Handshake::new(greeting(0), 1);
            let outcome = side.step(&regs).outcome;
            prop_assert!(!matches!(outcome, Outcome::Done(_)));
        }

        #[test]
        fn greetings_survive_the_registers(host in 0u16..16, ranks: u16, window in 0u32..1 << 18, offset in 0u32..1 << 18, chunk in 0u32..1 << CHUNK_BITS, link_model: u16, reliability in 0u8..8, shortcuts in 0u8..16) {
            let g = Greeting {
                host, ranks, chunk, link_model, reliability, shortcuts: Shortcuts::of_code(shortcuts), hosts: 4,
                window: u64::from(window) * OFFSET_UNIT,
                offset: u64::from(offset) * OFFSET_UNIT,
                ..Default::default()
            };
            let mut regs = [0; 8];
            regs[..7].copy_from_slice(&g.registers());
            prop_assert_eq!(Greeting::parse(&regs), Ok(g));
        }
    }
}
