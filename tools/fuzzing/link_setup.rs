//! A neighbour that writes any scratchpads and any words while a link is brought up.

use crate::script::Script;
use ntbring_ntb::PortIndex;
use ntbring_pci::link::{Action, Inputs, Introduction, LinkSetup, Phase, ARRIVAL, CONFIRMATION, REGISTERS};
use std::time::Duration;

/// Runs one input.
pub fn run(data: &[u8]) {
    let mut script = Script(data);
    let mine = Introduction { host: 5, port: PortIndex::ALL[0], doorbells: 31, bytes: 1 << 20 };
    let theirs = Introduction { host: script.word(), port: PortIndex::ALL[1], doorbells: 1, bytes: 4096 };
    let (mut side, mut other) = (LinkSetup::new(mine, 6), LinkSetup::new(theirs, script.word()));
    // The registers and words that each side reads.
    let mut inputs = [Inputs { now: Duration::ZERO, registers: [0; REGISTERS], words: [0; 2] }; 2];
    while !script.is_over() {
        match script.below(8) {
            0 => inputs[0].registers[usize::from(script.below(REGISTERS as u8))] = script.int(),
            1 => inputs[0].words[usize::from(script.below(2))] = script.word(),
            2 => inputs[0].registers[usize::from(script.below(REGISTERS as u8))] ^= 1 << script.below(32),
            3 => other = LinkSetup::new(theirs, script.word()),
            4 => inputs[0].registers = [0; REGISTERS],
            // An honest exchange: then the input gets further.
            _ => {
                let mut actions = Vec::new();
                other.step(&inputs[1], &mut actions);
                apply(&actions, &mut inputs[0]);
            }
        }
        let mut actions = Vec::new();
        let phase = side.step(&inputs[0], &mut actions);
        apply(&actions, &mut inputs[1]);
        if let Phase::Testing(theirs) | Phase::Up(theirs) = phase {
            assert!(theirs.bytes % 4096 == 0 && theirs.bytes > 0 && theirs.doorbells > 0);
        }
        let step = Duration::from_millis(script.byte().into());
        inputs.iter_mut().for_each(|inputs| inputs.now += step);
    }
}

/// Executes the outputs of one side on the inputs of the other.
fn apply(actions: &[Action], inputs: &mut Inputs) {
    assert!(actions.len() <= REGISTERS + 2);
    for action in actions {
        match *action {
            Action::Scratchpad { register, value } => inputs.registers[register] = value,
            Action::Store { offset: ARRIVAL, value } => inputs.words[0] = value,
            Action::Store { offset: CONFIRMATION, value } => inputs.words[1] = value,
            Action::Store { offset, .. } => panic!("a word at {offset}"),
        }
    }
}
