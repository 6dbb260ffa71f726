//! The state machine that brings a link up, without I/O.
//!
//! Four scratchpads suffice. Each side writes only the neighbour's registers and reads only its own:
//!
//! | register | holds |
//! |---|---|
//! | 0 | magic number, version, and the number of this bring-up (its *generation*, random) |
//! | 1 | the generation, and the number of the part of the introduction that is in register 2 |
//! | 2 | a part of the introduction |
//! | 3 | the neighbour's generation, the number of its parts that were read, and if this side is up |
//!
//! A part is overwritten only when the neighbour has read it. Registers survive processes and, on most chips, the loss
//! of the link; so all words have the generation to which they belong, and all are written again every 100 ms while this
//! side waits.
//!
//! After the introductions each side writes a word into the neighbour's window and waits for the neighbour's, and then
//! a second word that confirms the first: a link counts as up only when writes are known to arrive in both directions.
//! (Ids, offsets and sizes through scratchpads: the ring of NTB hosts, HUFS 2019.)

use super::introduction::{Introduction, PARTS};
use std::time::Duration;

/// Number of scratchpads in each direction.
pub const REGISTERS: usize = 4;

/// Offset of the word in a window that the neighbour writes first, bytes.
pub const ARRIVAL: usize = 0;
/// Offset of the word in a window with which the neighbour confirms that this host's first word has arrived, bytes.
pub const CONFIRMATION: usize = 8;

/// Version of everything that agents exchange through a link.
const VERSION: u8 = 1;
const MAGIC: u8 = 0x4e;
/// Marks a host that leaves: no generation has this number.
const LEAVING: u16 = 0;

/// Time after which the words are written again.
const REPEAT: Duration = Duration::from_millis(100);
/// Time after which words that have not arrived are reported.
const ARRIVAL_TIMEOUT: Duration = Duration::from_millis(500);

const HELLO: usize = 0;
const PART: usize = 1;
const VALUE: usize = 2;
const READ: usize = 3;
/// Bit of register 3 that is set while the side is up.
const UP: u16 = 1 << 8;

/// The inputs of a step.
#[derive(Clone, Copy, Debug)]
pub struct Inputs {
    /// Time of the monotonic clock.
    pub now: Duration,
    /// The scratchpads that the neighbour writes.
    pub registers: [u32; REGISTERS],
    /// The words at [`ARRIVAL`] and [`CONFIRMATION`] of this host's incoming window.
    pub words: [u64; 2],
}

/// An output of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write a scratchpad that the neighbour reads.
    Scratchpad {
        /// Number of the register.
        register: usize,
        /// Its value.
        value: u32,
    },
    /// Write a word of the neighbour's window.
    Store {
        /// Offset in the window, bytes.
        offset: usize,
        /// The word.
        value: u64,
    },
}

/// Progress of a bring-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The neighbour has not introduced itself yet.
    Introducing,
    /// The neighbour has introduced itself, and writes are being tested.
    Testing(Introduction),
    /// Writes arrive in both directions.
    Up(Introduction),
    /// The neighbour has said that it leaves.
    Left,
}

/// A reason for which a link does not come up. The bring-up goes on, since the neighbour may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The neighbour's agent has another version.
    #[error(
        "the neighbour's ntbringd speaks version {theirs} of the link protocol, this host's version {mine}: install the \
         same ntbring on both hosts"
    )]
    Version {
        /// The version of this host.
        mine: u8,
        /// The neighbour's version.
        theirs: u8,
    },
    /// The neighbour's registers hold no introduction.
    #[error("the neighbour's scratchpads hold what ntbring never writes: another driver is bound to its adapter")]
    Nonsense,
    /// The first word of the neighbour has not arrived.
    #[error("the neighbour's writes do not arrive here")]
    NothingArrives,
    /// The neighbour has not confirmed the first word of this host.
    #[error("this host's writes do not arrive at the neighbour")]
    NothingIsConfirmed,
}

/// One side of a bring-up.
pub struct LinkSetup {
    mine: Introduction,
    generation: u16,
    /// The neighbour's generation; None before it has introduced itself.
    peer: Option<u16>,
    parts: [u32; PARTS],
    /// Number of the neighbour's parts that were read.
    read: usize,
    /// Number of own parts that the neighbour has read.
    confirmed: usize,
    /// Time at which everything was last written.
    written: Option<Duration>,
    /// Time at which the test of writes has begun.
    testing: Option<Duration>,
    theirs: Option<Introduction>,
    is_up: bool,
    peer_is_up: bool,
    error: Option<SetupError>,
}

impl LinkSetup {
    /// Begins to bring a link up. `mine` is what this host tells the neighbour; `seed` is a random number.
    pub fn new(mine: Introduction, seed: u64) -> LinkSetup {
        LinkSetup::with_generation(mine, 1 + (seed % u64::from(u16::MAX)) as u16)
    }

    fn with_generation(mine: Introduction, generation: u16) -> LinkSetup {
        LinkSetup {
            mine,
            generation,
            peer: None,
            parts: [0; PARTS],
            read: 0,
            confirmed: 0,
            written: None,
            testing: None,
            theirs: None,
            is_up: false,
            peer_is_up: false,
            error: None,
        }
    }

    /// Returns the action with which a host leaves.
    pub fn leave() -> Action {
        Action::Scratchpad { register: HELLO, value: hello(VERSION, LEAVING) }
    }

    /// Returns the present reason for which the link does not come up; None if there is none (yet).
    pub fn error(&self) -> Option<SetupError> {
        self.error
    }

    /// Makes a step, and appends its outputs to `actions`, to be executed in this order. To be called whenever an input
    /// has changed, and at least every 100 ms. A link that was up and is in another phase now has lost its neighbour,
    /// even if it comes up again at once.
    pub fn step(&mut self, inputs: &Inputs, actions: &mut Vec<Action>) -> Phase {
        let before = self.progress();
        if self.listen(&inputs.registers) {
            return Phase::Left;
        }
        let has_news = before != self.progress();
        let (Some(peer), Some(theirs), PARTS) = (self.peer, self.theirs, self.confirmed) else {
            self.write_if(has_news, inputs.now, actions);
            return Phase::Introducing;
        };
        let word = first_word(peer, self.generation);
        let (has_arrived, is_confirmed) = (inputs.words[0] == word, inputs.words[1] == !word);
        if has_arrived && is_confirmed {
            self.error = None;
            let is_new = !std::mem::replace(&mut self.is_up, true);
            // The neighbour may still wait for the confirmation, or for other words.
            let is_settled = self.peer_is_up && !is_new && !has_news;
            if !is_settled && self.write_if(is_new || has_news, inputs.now, actions) {
                self.write_words(peer, has_arrived, actions);
            }
            return Phase::Up(theirs);
        }
        let since = *self.testing.get_or_insert(inputs.now);
        if inputs.now.saturating_sub(since) >= ARRIVAL_TIMEOUT {
            self.error = Some(if has_arrived { SetupError::NothingIsConfirmed } else { SetupError::NothingArrives });
        }
        if self.write_if(has_news || since == inputs.now, inputs.now, actions) || has_arrived {
            self.write_words(peer, has_arrived, actions);
        }
        Phase::Testing(theirs)
    }

    /// Returns the part of the state of which the neighbour must hear when it changes.
    fn progress(&self) -> (Option<u16>, usize, usize) {
        (self.peer, self.read, self.confirmed)
    }

    /// Reads the registers. Returns true if the neighbour has left.
    fn listen(&mut self, registers: &[u32; REGISTERS]) -> bool {
        let [magic, version, high, low] = registers[HELLO].to_be_bytes();
        let generation = u16::from_be_bytes([high, low]);
        if registers[HELLO] == 0 {
            // Nothing was written since this host has cleared the register.
            return false;
        }
        let foreign = match (magic, version) {
            (MAGIC, VERSION) => None,
            (MAGIC, theirs) => Some(SetupError::Version { mine: VERSION, theirs }),
            _ => Some(SetupError::Nonsense),
        };
        if foreign.is_some() || self.peer != Some(generation) {
            // The neighbour has begun anew.
            let peer = (foreign.is_none() && generation != LEAVING).then_some(generation);
            let LinkSetup { mine, generation, written, .. } = *self;
            *self = LinkSetup { peer, written, error: foreign, ..LinkSetup::with_generation(mine, generation) };
            if peer.is_none() {
                return foreign.is_none();
            }
        }
        let (for_this, part) = split(registers[PART]);
        if for_this == generation && usize::from(part) == self.read + 1 && self.read < PARTS {
            self.parts[self.read] = registers[VALUE];
            self.read += 1;
            if self.read == PARTS {
                self.theirs = Introduction::parse(&self.parts, generation);
                if self.theirs.is_none() {
                    // A part was lost: all of them are needed again.
                    self.read = 0;
                }
            }
        }
        let (for_this, read) = split(registers[READ]);
        let (read, is_up) = (read & !UP, read & UP != 0);
        if for_this == self.generation && usize::from(read) <= PARTS {
            self.confirmed = read.into();
            self.peer_is_up = is_up;
        }
        false
    }

    /// Writes all registers if there is news, or if it is time to repeat them. Returns true if it did.
    fn write_if(&mut self, has_news: bool, now: Duration, actions: &mut Vec<Action>) -> bool {
        let is_due = self.written.is_none_or(|written| now.saturating_sub(written) >= REPEAT);
        if !has_news && !is_due {
            return false;
        }
        self.written = Some(now);
        let mut write = |register, value| actions.push(Action::Scratchpad { register, value });
        write(HELLO, hello(VERSION, self.generation));
        if let Some(&part) = self.mine.parts(self.generation).get(self.confirmed) {
            // The part comes before the word that announces it.
            write(VALUE, part);
            write(PART, join(self.generation, self.confirmed + 1));
        }
        let up = if self.is_up { usize::from(UP) } else { 0 };
        write(READ, join(self.peer.unwrap_or(LEAVING), self.read | up));
        true
    }

    fn write_words(&self, peer: u16, has_arrived: bool, actions: &mut Vec<Action>) {
        let word = first_word(self.generation, peer);
        actions.push(Action::Store { offset: ARRIVAL, value: word });
        if has_arrived {
            actions.push(Action::Store { offset: CONFIRMATION, value: !word });
        }
    }
}

fn hello(version: u8, generation: u16) -> u32 {
    let [high, low] = generation.to_be_bytes();
    u32::from_be_bytes([MAGIC, version, high, low])
}

fn join(generation: u16, number: usize) -> u32 {
    u32::from(generation) << 16 | number as u32
}

fn split(word: u32) -> (u16, u16) {
    ((word >> 16) as u16, word as u16)
}

/// Returns the first word that the side with generation `from` writes into the window of the side with generation `to`.
fn first_word(from: u16, to: u16) -> u64 {
    u64::from(MAGIC) << 56 | u64::from(from) << 16 | u64::from(to)
}

#[cfg(test)]
mod tests;
