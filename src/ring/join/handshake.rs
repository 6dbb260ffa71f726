//! Exchange of parameters between two neighbours through the scratchpads, before any window is used.
//!
//! Each side has a [`Greeting`] for the other and writes it in parts into the other's registers 0 to 2, and then a
//! control word into register 3; it reads only its own registers. The control word holds the number of the part and the
//! number of the neighbour's parts that this side has read, so that each part is overwritten only when it has been
//! read. Four scratchpads are enough in this way. The module contains no I/O, clock or thread: its input and its output
//! are register values. (Ids, offsets and sizes through scratchpads: the ring of NTB hosts, HUFS 2019.)

pub use super::greeting::{Greeting, HandshakeError, OFFSET_UNIT};

use super::greeting::WORDS;

/// Number of scratchpads that a handshake uses.
pub const REGISTERS: usize = 4;

/// The register of the control word; the registers before it hold a part of the greeting.
const CONTROL: usize = REGISTERS - 1;

/// Number of parts of a greeting.
const PARTS: usize = WORDS.div_ceil(CONTROL);

/// Value of the upper half of every control word.
const MAGIC: u32 = 0x4e48; // "NH"

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Greeting = 1,
    Agreed = 2,
    /// This side has given up, and the rest of its greeting follows.
    Refusing = 3,
    /// This side has given up, and nothing follows.
    Refused = 4,
}

/// The control word of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Control {
    phase: Phase,
    /// Number of the part in the registers before this word; 0: none was written yet.
    part: usize,
    /// Number of the neighbour's parts that this side has read.
    read: usize,
}

impl Control {
    fn word(self) -> u32 {
        MAGIC << 16 | (self.phase as u32) << 8 | (self.part as u32) << 4 | self.read as u32
    }

    /// Decodes a control word; None if it is not one.
    fn parse(word: u32) -> Option<Control> {
        let phases = [Phase::Greeting, Phase::Agreed, Phase::Refusing, Phase::Refused];
        let phase = phases.into_iter().find(|phase| *phase as u32 == word >> 8 & 0xff)?;
        let (part, read) = ((word >> 4 & 0xf) as usize, (word & 0xf) as usize);
        (word >> 16 == MAGIC && part <= PARTS && read <= PARTS).then_some(Control { phase, part, read })
    }
}

/// One side of a handshake.
pub struct Handshake {
    mine: Greeting,
    expected: u16,
    /// The control word that was last written.
    written: Control,
    /// The parts of the neighbour's greeting that were read.
    parts: [u32; PARTS * CONTROL],
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
    /// No outcome yet: the caller repeats the step when the registers have changed.
    Waiting,
    /// Both sides agree; holds the neighbour's greeting.
    Done(Greeting),
    /// The two sides do not agree.
    Failed(HandshakeError),
}

impl Handshake {
    /// Creates the side that sends the greeting `mine` and expects host `expected` at the other end.
    pub fn new(mine: Greeting, expected: u16) -> Handshake {
        let written = Control { phase: Phase::Greeting, part: 0, read: 0 };
        Handshake { mine, expected, written, parts: [0; PARTS * CONTROL], theirs: None }
    }

    /// Makes one step, given the values of the own registers. The control register must have been read first.
    pub fn step(&mut self, own: &[u32; REGISTERS]) -> Step {
        let (before, mut write) = (self.written, Vec::new());
        let outcome = match self.advance(own, &mut write) {
            Ok(outcome) => outcome,
            Err(error) => {
                self.written.phase = Phase::Refusing;
                Outcome::Failed(error)
            }
        };
        self.write_control(before, &mut write);
        Step { write, outcome }
    }

    /// Exchanges parts of the greetings. Returns the neighbour's control word.
    fn exchange(&mut self, own: &[u32; REGISTERS], write: &mut Vec<(usize, u32)>) -> Result<Control, HandshakeError> {
        let nothing = Control { phase: Phase::Greeting, part: 0, read: 0 };
        let theirs = match own[CONTROL] {
            0 => nothing,
            word => Control::parse(word).ok_or_else(|| self.nonsense("unknown phase"))?,
        };
        if theirs.read > self.written.part || !(self.written.read..=self.written.read + 1).contains(&theirs.part) {
            return Err(self.nonsense("parts out of order"));
        }
        if theirs.part > self.written.read {
            self.parts[self.written.read * CONTROL..][..CONTROL].copy_from_slice(&own[..CONTROL]);
            self.written.read += 1;
        }
        if theirs.read == self.written.part && self.written.part < PARTS {
            let (words, start) = (self.mine.words(), self.written.part * CONTROL);
            write.extend(words.into_iter().skip(start).take(CONTROL).enumerate());
            self.written.part += 1;
        }
        Ok(theirs)
    }

    fn advance(&mut self, own: &[u32; REGISTERS], write: &mut Vec<(usize, u32)>) -> Result<Outcome, HandshakeError> {
        let theirs = self.exchange(own, write)?;
        let refuses = matches!(theirs.phase, Phase::Refusing | Phase::Refused);
        // A side compares the greetings only when the neighbour can compare them, too: then both report the difference.
        if self.theirs.is_none() && self.written.read == PARTS && (theirs.read == PARTS || refuses) {
            let words = self.parts.first_chunk().expect("a greeting is not longer than its parts");
            let greeting = Greeting::parse(words).map_err(|what| self.nonsense(what))?;
            self.theirs = Some(self.mine.judge(greeting, self.expected)?);
            self.written.phase = Phase::Agreed;
        }
        match (theirs.phase, self.theirs) {
            (Phase::Refused, _) | (Phase::Refusing, Some(_)) => {
                Err(HandshakeError::Refused { host: self.mine.host, neighbour: self.expected })
            }
            (Phase::Agreed, Some(greeting)) => Ok(Outcome::Done(greeting)),
            _ => Ok(Outcome::Waiting),
        }
    }

    /// Gives up. Returns the registers to be written. The neighbour may need the rest of the greeting to name the
    /// reason, so [`Handshake::serve`] has to be called until [`Handshake::is_over`], or until there is no more time
    /// for that.
    pub fn refuse(&mut self) -> Vec<(usize, u32)> {
        self.written.phase = Phase::Refusing;
        vec![(CONTROL, self.written.word())]
    }

    /// Sends the rest of the greeting after this side has given up, given the values of the own registers. Returns the
    /// registers to be written.
    pub fn serve(&mut self, own: &[u32; REGISTERS]) -> Vec<(usize, u32)> {
        let (before, mut write) = (self.written, Vec::new());
        if !matches!(self.exchange(own, &mut write), Ok(theirs) if theirs.read < PARTS) {
            self.written.phase = Phase::Refused;
        }
        self.write_control(before, &mut write);
        write
    }

    /// Ends the handshake after this side has given up: the neighbour does not wait any longer. Returns the registers
    /// to be written.
    pub fn end(&mut self) -> Vec<(usize, u32)> {
        self.written.phase = Phase::Refused;
        vec![(CONTROL, self.written.word())]
    }

    /// Returns true if this side has given up and the neighbour has its greeting.
    pub fn is_over(&self) -> bool {
        self.written.phase == Phase::Refused
    }

    fn write_control(&self, before: Control, write: &mut Vec<(usize, u32)>) {
        if self.written != before {
            write.push((CONTROL, self.written.word()));
        }
    }

    fn nonsense(&self, what: &'static str) -> HandshakeError {
        HandshakeError::Nonsense { host: self.mine.host, expected: self.expected, what }
    }
}

#[cfg(test)]
mod tests {
    use super::super::greeting::SHORTCUTS;
    use super::*;
    use crate::protocol::PROTOCOL_VERSION;
    use ntbring_ntb::Shortcuts;
    use proptest::prelude::*;

    fn greeting(host: u16) -> Greeting {
        Greeting { host, hosts: 4, ranks: 2, window: 1 << 20, offset: 4096, chunk: 16384, ..Default::default() }
    }

    /// Steps both sides in turn until both have an outcome.
    fn shake(a: Greeting, b: Greeting) -> (Outcome, Outcome) {
        let mut sides = [Handshake::new(a, 1), Handshake::new(b, 0)];
        let mut regs = [[0u32; REGISTERS]; 2];
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
            (Greeting { keepalive_timeout: 10, ..greeting(1) }, "NTBRING_KEEPALIVE_TIMEOUT"),
            (Greeting { doorbells: 2, ..greeting(1) }, "the number of doorbells of their adapters"),
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
    fn a_cable_in_the_wrong_port_is_named_on_both_sides() {
        let (a, b) =
            (Greeting { port: 2, opposite: 3, ..greeting(0) }, Greeting { port: 3, opposite: 2, ..greeting(1) });
        assert_eq!(shake(a, b), (Outcome::Done(b), Outcome::Done(a)));
        let (x, y) = shake(a, Greeting { port: 1, opposite: 0, ..b });
        let wrong = |host, port, neighbour, expected, found| {
            Outcome::Failed(HandshakeError::WrongPort { host, port, neighbour, expected, found })
        };
        assert_eq!((x, y), (wrong(0, 2, 1, 3, 1), wrong(1, 1, 0, 0, 2)));
    }

    #[test]
    fn a_side_that_gives_up_keeps_the_other_waiting_only_for_its_greeting() {
        let write = |regs: &mut [[u32; REGISTERS]; 2], to: usize, written: Vec<(usize, u32)>| {
            written.into_iter().for_each(|(r, v)| regs[to][r] = v)
        };
        for other in [greeting(0), Greeting { chunk: 64, ..greeting(0) }] {
            for serves in [false, true] {
                let (mut a, mut b) = (Handshake::new(other, 1), Handshake::new(greeting(1), 0));
                let mut regs = [[0; REGISTERS]; 2];
                write(&mut regs, 1, a.refuse());
                let outcome = (0..20).find_map(|_| {
                    let step = b.step(&regs[1]);
                    write(&mut regs, 0, step.write);
                    let written = if serves { a.serve(&regs[0]) } else { a.end() };
                    write(&mut regs, 1, written);
                    (step.outcome != Outcome::Waiting).then_some(step.outcome)
                });
                let named = serves && other.chunk == 64;
                match outcome {
                    Some(Outcome::Failed(HandshakeError::Disagree { what: "NTBRING_CHUNK", .. })) => assert!(named),
                    Some(Outcome::Failed(HandshakeError::Refused { host: 1, neighbour: 0 })) => assert!(!named),
                    outcome => panic!("{outcome:?}"),
                }
                assert!(a.is_over());
            }
        }
    }

    #[test]
    fn a_side_that_steps_often_or_rarely_makes_no_difference() {
        for rare in 1..8 {
            let mut sides = [Handshake::new(greeting(0), 1), Handshake::new(greeting(1), 0)];
            let (mut regs, mut done) = ([[0u32; REGISTERS]; 2], [false; 2]);
            for turn in 0..100 {
                let i = usize::from(turn % rare == 0);
                if !done[i] {
                    let step = sides[i].step(&regs[i]);
                    step.write.iter().for_each(|&(r, v)| regs[1 - i][r] = v);
                    done[i] = matches!(step.outcome, Outcome::Done(_));
                }
            }
            assert!(rare == 1 || done == [true; 2], "{rare}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_registers_never_panic_and_rarely_pass(regs: [u32; REGISTERS]) {
            let mut side = Handshake::new(greeting(0), 1);
            let outcome = side.step(&regs).outcome;
            prop_assert!(!matches!(outcome, Outcome::Done(_)));
        }
    }
}
