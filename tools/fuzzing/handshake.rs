//! A neighbour that writes what it likes into the scratchpads, step by step.

use arbitrary::{Arbitrary, Unstructured};
use ntbring_ring::handshake::{Greeting, Handshake, Outcome, REGISTERS};

/// Runs one input.
pub fn run(data: &[u8]) {
    let Ok(steps) = <Vec<[u32; REGISTERS]>>::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let mine = Greeting { hosts: 4, window: 1 << 20, chunk: 16 << 10, ..Greeting::default() };
    let mut side = Handshake::new(mine, 1);
    for registers in steps {
        let step = side.step(&registers);
        assert!(step.write.iter().all(|&(register, _)| register < REGISTERS));
        match step.outcome {
            Outcome::Waiting => {}
            Outcome::Done(theirs) => {
                assert_eq!((theirs.host, theirs.hosts), (1, 4));
                assert_eq!((theirs.window, theirs.chunk), (mine.window, mine.chunk));
                return;
            }
            Outcome::Failed(error) => {
                assert!(!error.to_string().is_empty());
                return;
            }
        }
    }
}
