//! Whether the kernel's copies or two copies through a lane are the faster way here, found out while payloads are fetched.
//!
//! Where cores share a cache, a lane may be three times as fast as the kernel; where they do not, half as fast. Nothing that can
//! be asked for tells which it is, and a hypervisor may change it at any time. So both are tried in turn, the better is kept for
//! long, and then both are tried again.
//!
//! What counts is the time while something is being fetched: in between, the rank may compute. Of ranks that share cores
//! all time counts: who streams to them needs a core for it, and what a payload waits for may be what another one takes.
//! While payloads are still fetched the one way after a change to the other, nothing counts.
//!
//! Payloads that fill a cache are compared apart from others: there the kernel may be three times as fast as a lane where for
//! smaller ones it is half as fast, or the other way round. That each of the two is slower while some of the other is under way
//! is left to the medians.

use std::time::{Duration, Instant};

/// The turns of a trial; the median of each way counts. Not strictly in turn, lest large payloads from two ranks that come in
/// turn all come the same way from one of them.
const TURNS: [Mover; 6] = [Mover::Kernel, Mover::Lane, Mover::Lane, Mover::Kernel, Mover::Lane, Mover::Kernel];

/// Bytes of a turn that count, and before those: a window of payloads begins with their headers. Not less than a payload: the
/// first may be the first to touch its memory, and each begins in another cache than the one before it has ended in.
const TURN: u64 = 4 << 20;
const START: u64 = 1 << 20;

/// More than that does not make a turn any longer.
const TURN_MOST: u64 = 64 << 20;

/// From so many bytes on payloads are compared apart.
const LARGE: u64 = 8 << 20;

/// The kernel has to be faster by this: its copies need messages that do not count, and a lane is slow while whoever is at its
/// other end is just trying the kernel.
const WORTH: f64 = 1.25;
/// The same where all time counts, so that the two differ by less.
const WORTH_CROWDED: f64 = 1.1;
/// The same for large payloads, beside which messages are nothing.
const WORTH_LARGE: f64 = 1.05;

/// After a trial its winner is kept for so many times as many bytes as it took, but for no more than if it took so many.
const KEPT: u64 = 50;
const KEPT_OF_MOST: u64 = 512 << 20;

/// What moves a payload that is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mover {
    /// The kernel copies, for the receiver or for both sides.
    Kernel,
    /// Both sides copy, through a lane; in exchanges, through memory of one of them.
    Lane,
}

/// Chooses between the two for all that a rank fetches from others whose memory it reaches.
#[derive(Debug)]
pub struct Contests {
    small: Contest,
    large: Contest,
}

/// Chooses between the two for payloads of about one size.
#[derive(Debug)]
pub struct Contest {
    mover: Mover,
    /// Payloads that are being fetched each way.
    open: [u32; 2],
    /// None while the better way is kept.
    trial: Option<Trial>,
    /// Bytes until there is another trial.
    left: u64,
    /// Whether the time between fetches counts, too.
    crowded: bool,
    /// The kernel has to be faster by this.
    worth: f64,
}

#[derive(Debug, Default)]
struct Trial {
    /// Bytes a second of each turn that is over.
    rates: Vec<f64>,
    /// Bytes of all turns.
    bytes: u64,
    /// Bytes of the largest payload, at most [`TURN_MOST`].
    largest: u64,
    turn: Turn,
}

#[derive(Debug, Default)]
struct Turn {
    /// Whether what has come counts.
    counts: bool,
    bytes: u64,
    busy: Duration,
    /// Since when something is being fetched, and everything the same way.
    since: Option<Instant>,
}

/// What a trial has shown: bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// By the kernel.
    pub kernel: f64,
    /// Through lanes.
    pub lane: f64,
}

impl Mover {
    fn other(self) -> Mover {
        match self {
            Mover::Kernel => Mover::Lane,
            Mover::Lane => Mover::Kernel,
        }
    }
}

/// Whether a payload of so many bytes is compared apart from smaller ones.
pub fn is_large(size: u64) -> bool {
    size >= LARGE
}

impl Contests {
    /// Begin with trials. `crowded`: there are more ranks than cores.
    pub fn new(crowded: bool) -> Contests {
        let worth = if crowded { WORTH_CROWDED } else { WORTH };
        Contests { small: Contest::new(crowded, worth), large: Contest::new(crowded, WORTH_LARGE) }
    }

    /// The one for a payload of so many bytes.
    pub fn of(&mut self, size: u64) -> &mut Contest {
        match is_large(size) {
            false => &mut self.small,
            true => &mut self.large,
        }
    }

    /// Whether lanes have won for what need not be offered, and nothing is tried now.
    pub fn are_for_lanes(&self) -> bool {
        self.small.is_for_lanes()
    }
}

impl Contest {
    fn new(crowded: bool, worth: f64) -> Contest {
        Contest { mover: TURNS[0], open: [0; 2], trial: Some(Trial::default()), left: 0, crowded, worth }
    }

    /// For what several ranks exchange: only the time of exchanges counts, waits for whoever is late included.
    pub fn of_exchanges() -> Contest {
        Contest::new(false, WORTH_LARGE)
    }

    /// What is to move the next payload.
    pub fn next(&self) -> Mover {
        self.mover
    }

    fn is_for_lanes(&self) -> bool {
        self.trial.is_none() && self.mover == Mover::Lane
    }

    /// A payload of so many bytes is about to be fetched: which way.
    pub fn begin(&mut self, size: u64, now: impl FnOnce() -> Instant) -> Mover {
        if let Some(trial) = &mut self.trial {
            trial.largest = trial.largest.max(size.min(TURN_MOST));
            if self.open == [0; 2] {
                trial.turn.since.get_or_insert_with(now);
            }
        }
        self.open[self.mover as usize] += 1;
        self.mover
    }

    /// So many more bytes of it are here. Returns what a trial has shown if this was the end of one.
    pub fn moved(&mut self, mover: Mover, bytes: u64, now: impl FnOnce() -> Instant) -> Option<Outcome> {
        let Some(trial) = &mut self.trial else {
            self.left = self.left.saturating_sub(bytes);
            if self.left == 0 {
                self.try_again();
            }
            return None;
        };
        trial.bytes += bytes;
        let turn = &mut trial.turn;
        let since = turn.since.filter(|_| mover == self.mover)?;
        turn.bytes += bytes;
        if !turn.counts && turn.bytes >= START.max(trial.largest) {
            *turn = Turn { counts: true, since: Some(now()), ..Turn::default() };
            return None;
        }
        if turn.bytes < TURN.max(trial.largest) {
            return None;
        }
        let now = now();
        let busy = turn.busy + now.saturating_duration_since(since);
        let rate = turn.bytes as f64 / busy.as_secs_f64().max(1e-9);
        self.over(rate, now)
    }

    /// A turn is over.
    fn over(&mut self, rate: f64, now: Instant) -> Option<Outcome> {
        let trial = self.trial.as_mut()?;
        trial.rates.push(rate);
        trial.turn = Turn::default();
        if let Some(&next) = TURNS.get(trial.rates.len()) {
            if next == self.mover {
                trial.turn.since = (self.open[next as usize] > 0 || self.crowded).then_some(now);
            }
            self.mover = next;
            return None;
        }
        let [kernel, lane] = [Mover::Kernel, Mover::Lane].map(|mover| {
            let turns = trial.rates.iter().zip(TURNS).filter(|(_, turn)| *turn == mover);
            let mut rates: Vec<f64> = turns.map(|(rate, _)| *rate).collect();
            rates.sort_by(f64::total_cmp);
            rates[rates.len() / 2]
        });
        self.left = KEPT * trial.bytes.min(KEPT_OF_MOST);
        self.mover = if self.worth * lane > kernel { Mover::Lane } else { Mover::Kernel };
        self.trial = None;
        Some(Outcome { kernel, lane })
    }

    /// The kernel has refused a copy, which counts as a turn in which nothing came. What it was for is fetched otherwise.
    pub fn refused(&mut self, now: impl FnOnce() -> Instant) {
        let now = now();
        self.end(Mover::Kernel, || now);
        match self.mover {
            Mover::Kernel if self.trial.is_some() => drop(self.over(0.0, now)),
            Mover::Kernel => self.try_again(),
            Mover::Lane => {}
        }
    }

    /// Tries both again, although one has won.
    pub fn try_again(&mut self) {
        (self.mover, self.trial) = (TURNS[0], Some(Trial::default()));
    }

    /// All of it is here, or nothing more will come since its sender is lost.
    pub fn end(&mut self, mover: Mover, now: impl FnOnce() -> Instant) {
        self.open[mover as usize] = self.open[mover as usize].saturating_sub(1);
        let Some(trial) = &mut self.trial else { return };
        let others = self.open[self.mover.other() as usize];
        match (self.open[self.mover as usize], trial.turn.since) {
            (0, Some(since)) if !self.crowded => {
                trial.turn.busy += now().saturating_duration_since(since);
                trial.turn.since = None;
            }
            // The last of those that were fetched the other way: from now on everything counts.
            (1.., None) if others == 0 => trial.turn.since = Some(now()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A rank that fetches payloads, at speeds of bytes a nanosecond.
    struct Rank {
        contest: Contest,
        now: Instant,
        speeds: [u64; 2],
        bytes: [u64; 2],
        outcomes: Vec<Outcome>,
    }

    /// Bytes that come at once.
    const PIECE: u64 = 16 << 10;

    impl Rank {
        fn new(kernel: u64, lane: u64) -> Rank {
            let (contest, speeds) = (Contest::new(false, WORTH), [kernel, lane]);
            Rank { contest, now: Instant::now(), speeds, bytes: [0; 2], outcomes: Vec::new() }
        }

        /// Fetches payloads, so many of them at once, and computes whenever none is left.
        fn fetch(&mut self, payloads: usize, size: u64, at_once: usize, computes: bool) {
            let mut open = VecDeque::new();
            for i in 0..payloads {
                let now = self.now;
                open.push_back(self.contest.begin(size, || now));
                while open.len() >= at_once || i + 1 == payloads && !open.is_empty() {
                    let mover = open.pop_front().unwrap();
                    self.take(mover, size);
                }
                if computes && open.is_empty() {
                    self.now += Duration::from_millis(3);
                }
            }
        }

        fn take(&mut self, mover: Mover, size: u64) {
            for at in (0..size).step_by(PIECE as usize) {
                let piece = PIECE.min(size - at);
                self.now += Duration::from_nanos(piece / self.speeds[mover as usize]);
                self.bytes[mover as usize] += piece;
                let now = self.now;
                self.outcomes.extend(self.contest.moved(mover, piece, || now));
            }
            let now = self.now;
            self.contest.end(mover, || now);
        }

        fn share_of_lanes(&self) -> f64 {
            self.bytes[1] as f64 / (self.bytes[0] + self.bytes[1]) as f64
        }
    }

    #[test]
    fn the_faster_way_is_kept() {
        for (size, at_once) in [(10_000, 1), (10_000, 64), (300_000, 1), (300_000, 7), (4 << 20, 1), (4 << 20, 3)] {
            for computes in [false, true] {
                let run = |kernel, lane| {
                    let mut rank = Rank::new(kernel, lane);
                    rank.fetch((10 << 30) / size as usize, size, at_once, computes);
                    assert!(!rank.outcomes.is_empty());
                    rank.share_of_lanes()
                };
                let shares = [run(10, 30), run(30, 10)];
                assert!(shares[0] > 0.95 && shares[1] < 0.05, "{shares:?} of {size} bytes, {at_once} at once");
            }
        }
    }

    #[test]
    fn among_ranks_that_share_cores_waiting_counts() {
        // What comes through lanes takes three times as long, but the kernel's copies are waited for in between.
        let run = |crowded, wait| {
            let mut rank = Rank::new(30, 10);
            rank.contest = Contest::new(crowded, WORTH_CROWDED);
            for _ in 0..10_000 {
                if rank.contest.mover == Mover::Kernel {
                    rank.now += wait;
                }
                rank.fetch(3, 64 << 10, 1, false);
            }
            assert!(!rank.outcomes.is_empty());
            rank.contest.is_for_lanes()
        };
        let [none, long] = [0, 20].map(Duration::from_micros);
        assert_eq!([run(true, none), run(true, long)], [false, true]);
        assert_eq!([run(false, none), run(false, long)], [false, false]);
    }

    #[test]
    fn a_machine_that_changes_is_noticed() {
        let mut rank = Rank::new(10, 30);
        rank.fetch(1000, 1 << 20, 1, false);
        assert!(rank.contest.is_for_lanes());
        let Outcome { kernel, lane } = rank.outcomes[0];
        assert!(lane > 2.9 * kernel && lane < 3.1 * kernel, "{:?}", rank.outcomes);
        rank.speeds = [30, 10];
        rank.fetch(1000, 1 << 20, 1, false);
        assert!(!rank.contest.is_for_lanes());
    }

    #[test]
    fn while_both_ways_are_under_way_nothing_counts() {
        // Windows of 64 payloads, all of which are accepted before the first of them is there.
        let mut rank = Rank::new(10, 30);
        for _ in 0..100 {
            let now = rank.now;
            let open: Vec<Mover> = (0..64).map(|_| rank.contest.begin(1 << 20, || now)).collect();
            open.into_iter().for_each(|mover| rank.take(mover, 1 << 20));
        }
        for Outcome { kernel, lane } in &rank.outcomes {
            assert!(*lane > 2.9 * kernel && *lane < 3.1 * kernel, "{:?}", rank.outcomes);
        }
        assert!(!rank.outcomes.is_empty());
    }

    #[test]
    fn a_kernel_that_refuses_loses() {
        let mut rank = Rank::new(30, 10);
        for _ in 0..1000 {
            let now = rank.now;
            match rank.contest.begin(1 << 20, || now) {
                Mover::Kernel => rank.contest.refused(|| now),
                Mover::Lane => rank.take(Mover::Lane, 1 << 20),
            }
            assert_eq!(rank.contest.open, [0; 2]);
        }
        assert!(rank.contest.is_for_lanes() && rank.share_of_lanes() == 1.0);
        // One that no longer refuses is found out.
        rank.contest.try_again();
        rank.fetch(1000, 1 << 20, 1, false);
        assert!(!rank.contest.is_for_lanes());
    }

    #[test]
    fn large_payloads_from_two_ranks_in_turn_are_compared_with_their_like() {
        // From one of them everything takes four times as long, so the winner must not be who had the other.
        let mut rank = Rank::new(10, 30);
        for turn in 0..40 {
            rank.speeds = if turn % 2 == 0 { [40, 120] } else { [10, 30] };
            rank.fetch(1, 8 << 20, 1, false);
        }
        assert!(rank.contest.is_for_lanes(), "{:?}", rank.outcomes);
        let mut rank = Rank::new(30, 10);
        for turn in 0..40 {
            rank.speeds = if turn % 2 == 0 { [30, 10] } else { [120, 40] };
            rank.fetch(1, 8 << 20, 1, false);
        }
        assert!(!rank.contest.is_for_lanes(), "{:?}", rank.outcomes);
    }

    #[test]
    fn who_is_lost_leaves_nothing_behind() {
        let mut rank = Rank::new(10, 30);
        let now = rank.now;
        let mover = rank.contest.begin(1 << 20, || now);
        rank.now += Duration::from_secs(100);
        rank.contest.end(mover, || now);
        assert_eq!(rank.contest.open, [0; 2]);
        rank.fetch(1000, 1 << 20, 1, false);
        assert!(rank.contest.is_for_lanes());
    }

    #[test]
    fn payloads_that_fill_a_cache_have_a_contest_of_their_own() {
        let mut contests = Contests::new(false);
        let mut fetch = |size: u64, speeds: [u64; 2]| {
            let contest = std::mem::replace(contests.of(size), Contest::new(false, WORTH));
            let mut rank = Rank { contest, ..Rank::new(speeds[0], speeds[1]) };
            rank.fetch(300, size, 3, false);
            *contests.of(size) = rank.contest;
        };
        fetch(1 << 20, [10, 30]);
        fetch(32 << 20, [30, 26]);
        assert!(contests.are_for_lanes() && !contests.of(32 << 20).is_for_lanes());
        assert!(contests.of(LARGE - 1).is_for_lanes() && !contests.of(LARGE).is_for_lanes());
    }
}
