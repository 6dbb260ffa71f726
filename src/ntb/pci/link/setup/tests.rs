use super::*;
use ntbring_ntb::PortIndex;
use proptest::prelude::*;

/// One end of a link: its state machine, and the memory that the other end writes.
struct End {
    setup: LinkSetup,
    mine: Introduction,
    registers: [u32; REGISTERS],
    words: [u64; 2],
    phase: Phase,
}

impl End {
    fn new(number: usize, seed: u64) -> End {
        let mine = Introduction {
            host: 0x1234_5678_9abc_def0 + number as u64,
            port: PortIndex::ALL[number],
            doorbells: 15,
            bytes: 4 << 20,
        };
        let setup = LinkSetup::new(mine, seed);
        End { setup, mine, registers: [0; REGISTERS], words: [0; 2], phase: Phase::Introducing }
    }

    /// Begins anew, as a host does whose link has come up or whose agent has restarted.
    fn restart(&mut self, seed: u64) {
        *self = End { words: self.words, ..End::new(self.mine.port.get().into(), seed) };
        self.words = [0; 2];
    }
}

/// Makes a step at one end. `passes` decides which of its writes arrive.
fn step(ends: &mut [End; 2], at: usize, now: Duration, mut passes: impl FnMut(&Action) -> bool) {
    let mut actions = Vec::new();
    let inputs = Inputs { now, registers: ends[at].registers, words: ends[at].words };
    ends[at].phase = ends[at].setup.step(&inputs, &mut actions);
    for action in actions.into_iter().filter(|action| passes(action)) {
        match action {
            Action::Scratchpad { register, value } => ends[1 - at].registers[register] = value,
            Action::Store { offset, value } => ends[1 - at].words[offset / 8] = value,
        }
    }
}

fn are_up(ends: &[End; 2]) -> bool {
    [0, 1].iter().all(|&i| ends[i].phase == Phase::Up(ends[1 - i].mine))
}

#[test]
fn both_ends_come_up_in_few_steps_without_waiting() {
    let mut ends = [End::new(0, 1), End::new(1, 2)];
    let steps = (1..100).find(|&turn| {
        step(&mut ends, turn % 2, Duration::ZERO, |_| true);
        are_up(&ends)
    });
    assert!(steps.is_some_and(|steps| steps <= 20), "{steps:?}");
}

#[test]
fn a_link_that_is_up_writes_nothing() {
    let mut ends = [End::new(0, 1), End::new(1, 2)];
    for turn in 0..40 {
        step(&mut ends, turn % 2, Duration::ZERO, |_| true);
    }
    assert!(are_up(&ends));
    for turn in 0..40 {
        let now = Duration::from_secs(turn as u64);
        step(&mut ends, turn % 2, now, |action| panic!("{action:?}"));
    }
}

#[test]
fn writes_that_do_not_arrive_are_named_by_direction() {
    let mut ends = [End::new(0, 1), End::new(1, 2)];
    for turn in 0..200 {
        let (at, now) = (turn % 2, Duration::from_millis(10 * turn as u64));
        // Nothing that end 0 writes into the window of end 1 arrives.
        step(&mut ends, at, now, |action| at == 1 || matches!(action, Action::Scratchpad { .. }));
    }
    assert_eq!(ends[0].setup.error(), Some(SetupError::NothingIsConfirmed));
    assert_eq!(ends[1].setup.error(), Some(SetupError::NothingArrives));
    assert!(ends.iter().all(|end| matches!(end.phase, Phase::Testing(_))));
    // Once they arrive, the link comes up, and the errors are gone.
    for turn in 200..240 {
        step(&mut ends, turn % 2, Duration::from_millis(10 * turn as u64), |_| true);
    }
    assert!(are_up(&ends) && ends.iter().all(|end| end.setup.error().is_none()));
}

#[test]
fn an_end_that_restarts_or_leaves_is_noticed() {
    let mut ends = [End::new(0, 1), End::new(1, 2)];
    for turn in 0..40 {
        step(&mut ends, turn % 2, Duration::ZERO, |_| true);
    }
    ends[1].restart(3);
    step(&mut ends, 1, Duration::ZERO, |_| true);
    step(&mut ends, 0, Duration::ZERO, |_| true);
    assert_eq!(ends[0].phase, Phase::Introducing);
    for turn in 0..60 {
        step(&mut ends, turn % 2, Duration::from_millis(20 * turn as u64), |_| true);
    }
    assert!(are_up(&ends));
    let Action::Scratchpad { register, value } = LinkSetup::leave() else { panic!() };
    ends[1].registers[register] = value;
    step(&mut ends, 1, Duration::ZERO, |_| true);
    assert_eq!(ends[1].phase, Phase::Left);
}

#[test]
fn other_versions_and_drivers_are_named() {
    for (word, error) in [
        (0x4e02_0001, SetupError::Version { mine: 1, theirs: 2 }),
        (0x1234_5678, SetupError::Nonsense),
        (1, SetupError::Nonsense),
    ] {
        let mut ends = [End::new(0, 1), End::new(1, 2)];
        ends[0].registers[HELLO] = word;
        step(&mut ends, 0, Duration::ZERO, |_| true);
        assert_eq!((ends[0].phase, ends[0].setup.error()), (Phase::Introducing, Some(error)));
    }
}

proptest! {
    /// Any words may be lost, and either end may restart at any time: as soon as writes arrive, both ends come up, with
    /// each other's introduction.
    #[test]
    fn a_link_comes_up_after_any_losses_and_restarts(
        turns in prop::collection::vec((0..2usize, 0..8u8, any::<u64>()), 0..200),
        stale: [[u32; REGISTERS]; 2],
        has_stale: bool,
    ) {
        let mut ends = [End::new(0, 1), End::new(1, 2)];
        if has_stale {
            ends[0].registers = stale[0];
            ends[1].registers = stale[1];
        }
        let mut now = Duration::ZERO;
        let turn = |ends: &mut [End; 2], at: usize, now, mut losses: u64| {
            step(ends, at, now, |_| { losses = losses.rotate_right(1); losses & 1 == 0 });
        };
        for (at, what, losses) in turns {
            now += Duration::from_millis(30);
            if what == 0 {
                ends[at].restart(losses | 1);
            }
            turn(&mut ends, at, now, losses);
        }
        for i in 0..200 {
            now += Duration::from_millis(30);
            turn(&mut ends, i % 2, now, 0);
        }
        prop_assert!(are_up(&ends), "{:?} {:?}", ends[0].phase, ends[1].phase);
    }

    #[test]
    fn arbitrary_registers_never_panic_or_bring_a_link_up(registers: [u32; REGISTERS], words: [u64; 2]) {
        let mut ends = [End::new(0, 1), End::new(1, 2)];
        ends[0].registers = registers;
        ends[0].words = words;
        for _ in 0..8 {
            step(&mut ends, 0, Duration::ZERO, |_| true);
        }
        prop_assert!(!matches!(ends[0].phase, Phase::Up(_)));
    }
}
