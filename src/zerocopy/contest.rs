//! Auto-tuner that selects the faster copy path at run time, while payloads are fetched: copies by the kernel (CMA),
//! or two copies through a lane.
//!
//! If cores share a cache, a lane may be three times as fast as the kernel; if they do not, half as fast. No
//! query tells which case applies, and a hypervisor may change it at any time. The tuner therefore tries both paths
//! in turn, keeps the better one for long, and then tries both again.
//!
//! The measured time is the time in which something is being fetched; in between, the rank may compute. For
//! oversubscribed ranks, which share cores, all time counts: a rank that streams to them needs a core for it, and
//! another rank may use the core for which a payload waits. Nothing counts after a change of the path, while payloads
//! are still fetched by the old path.
//!
//! Payloads that fill a cache are compared separately from others: for them the kernel may be three times as fast as
//! a lane where it is half as fast for smaller ones, or vice versa. Each kind is slower while payloads of the other
//! kind are in flight; the use of medians compensates for that.

use std::time::{Duration, Instant};

/// The path in each measurement interval of a trial; the median of each path counts. The paths do not strictly
/// alternate: otherwise, with large payloads from two ranks in turn, all payloads of one rank could use the same
/// path.
const TURNS: [Mover; 6] = [Mover::Kernel, Mover::Lane, Mover::Lane, Mover::Kernel, Mover::Lane, Mover::Kernel];

/// Bytes that are measured in an interval (`TURN`), and bytes before them that are not (`START`), since a window of
/// payloads begins with their headers. Both are at least the size of a payload: the first payload may be the first to
/// touch its memory, and each payload begins in another cache than the one in which the previous payload ended.
const TURN: u64 = 4 << 20;
const START: u64 = 1 << 20;

/// Largest payload size that extends an interval.
const TURN_MOST: u64 = 64 << 20;

/// Payload size in bytes from which payloads are compared separately.
const LARGE: u64 = 8 << 20;

/// Factor by which the kernel has to be faster: its copies need messages that are not measured, and a lane is slow
/// while the rank at its other end is trying the kernel.
const WORTH: f64 = 1.25;
/// The same factor for oversubscribed ranks: all time counts there, so that the paths differ by less.
const WORTH_CROWDED: f64 = 1.1;
/// The same factor for large payloads, for which the cost of messages is negligible.
const WORTH_LARGE: f64 = 1.05;

/// The winner of a trial is kept for `KEPT` times the bytes of the trial, of which at most `KEPT_OF_MOST` count.
const KEPT: u64 = 50;
const KEPT_OF_MOST: u64 = 512 << 20;

/// Copy path of a payload that is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mover {
    /// The kernel copies (CMA), for the receiver or for both sides.
    Kernel,
    /// Both sides copy, through a lane; in all-to-all exchanges, through memory of one of them.
    Lane,
}

/// Selects the copy path for all payloads that a rank fetches from ranks whose memory it can map or copy directly.
#[derive(Debug)]
pub struct Contests {
    small: Contest,
    large: Contest,
}

/// Selects the copy path for payloads of one size class.
#[derive(Debug)]
pub struct Contest {
    mover: Mover,
    /// Number of payloads that are being fetched by each path.
    open: [u32; 2],
    /// The trial in progress; None while the better path is kept.
    trial: Option<Trial>,
    /// Bytes until the next trial.
    left: u64,
    /// True if the time between fetches counts, too (oversubscribed ranks).
    crowded: bool,
    /// Factor by which the kernel has to be faster.
    worth: f64,
}

#[derive(Debug, Default)]
struct Trial {
    /// Rate of each completed interval in bytes per second.
    rates: Vec<f64>,
    /// Bytes of all intervals.
    bytes: u64,
    /// Size in bytes of the largest payload, at most [`TURN_MOST`].
    largest: u64,
    turn: Turn,
}

#[derive(Debug, Default)]
struct Turn {
    /// True after the first bytes of the interval, which are not measured.
    counts: bool,
    bytes: u64,
    busy: Duration,
    /// Time since which something is being fetched, and everything by the same path.
    since: Option<Instant>,
}

/// Result of a trial: rates in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Rate of copies by the kernel.
    pub kernel: f64,
    /// Rate of copies through lanes.
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

/// Returns true if payloads of `size` bytes are compared separately from smaller ones.
pub fn is_large(size: u64) -> bool {
    size >= LARGE
}

impl Contests {
    /// Returns tuners that begin with trials. `crowded` is true if there are more ranks than cores (oversubscribed).
    pub fn new(crowded: bool) -> Contests {
        let worth = if crowded { WORTH_CROWDED } else { WORTH };
        Contests { small: Contest::new(crowded, worth), large: Contest::new(crowded, WORTH_LARGE) }
    }

    /// Returns the tuner for a payload of `size` bytes.
    pub fn of(&mut self, size: u64) -> &mut Contest {
        match is_large(size) {
            false => &mut self.small,
            true => &mut self.large,
        }
    }

    /// Returns true if lanes have won for the smaller payloads, for which rendezvous is optional, and no trial is
    /// running.
    pub fn are_for_lanes(&self) -> bool {
        self.small.is_for_lanes()
    }
}

impl Contest {
    fn new(crowded: bool, worth: f64) -> Contest {
        Contest { mover: TURNS[0], open: [0; 2], trial: Some(Trial::default()), left: 0, crowded, worth }
    }

    /// Returns the tuner for all-to-all exchanges: only the time of exchanges counts, including waits for late ranks.
    pub fn of_exchanges() -> Contest {
        Contest::new(false, WORTH_LARGE)
    }

    /// Copy path of the next payload.
    pub fn next(&self) -> Mover {
        self.mover
    }

    fn is_for_lanes(&self) -> bool {
        self.trial.is_none() && self.mover == Mover::Lane
    }

    /// Records the start of a fetch of `size` bytes; returns its copy path.
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

    /// Records the arrival of `bytes` more bytes. Returns the result of a trial if this ends one.
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

    /// Ends an interval.
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

    /// Records that the kernel has refused a copy, which counts as an interval at rate 0. The caller fetches the
    /// payload by the other path.
    pub fn refused(&mut self, now: impl FnOnce() -> Instant) {
        let now = now();
        self.end(Mover::Kernel, || now);
        match self.mover {
            Mover::Kernel if self.trial.is_some() => drop(self.over(0.0, now)),
            Mover::Kernel => self.try_again(),
            Mover::Lane => {}
        }
    }

    /// Starts a new trial, although one path has won.
    pub fn try_again(&mut self) {
        (self.mover, self.trial) = (TURNS[0], Some(Trial::default()));
    }

    /// Records the end of a fetch: all bytes are here, or the sender is lost and no more will arrive.
    pub fn end(&mut self, mover: Mover, now: impl FnOnce() -> Instant) {
        self.open[mover as usize] = self.open[mover as usize].saturating_sub(1);
        let Some(trial) = &mut self.trial else { return };
        let others = self.open[self.mover.other() as usize];
        match (self.open[self.mover as usize], trial.turn.since) {
            (0, Some(since)) if !self.crowded => {
                trial.turn.busy += now().saturating_duration_since(since);
                trial.turn.since = None;
            }
            // The last payload fetched by the other path has ended: measurement starts now.
            (1.., None) if others == 0 => trial.turn.since = Some(now()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A simulated rank that fetches payloads, at speeds in bytes per nanosecond.
    struct Rank {
        contest: Contest,
        now: Instant,
        speeds: [u64; 2],
        bytes: [u64; 2],
        outcomes: Vec<Outcome>,
    }

    /// Size of a chunk in bytes.
    const PIECE: u64 = 16 << 10;

    impl Rank {
        fn new(kernel: u64, lane: u64) -> Rank {
            let (contest, speeds) = (Contest::new(false, WORTH), [kernel, lane]);
            Rank { contest, now: Instant::now(), speeds, bytes: [0; 2], outcomes: Vec::new() }
        }

        /// Fetches payloads, `at_once` of them concurrently, and computes whenever none is left if `computes` is
        /// true.
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
        // Payloads through lanes take three times as long, but the kernel's copies are waited for in between.
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
        // Windows of 64 payloads, all of which are accepted before the first one has arrived.
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
        // A kernel that no longer refuses is detected.
        rank.contest.try_again();
        rank.fetch(1000, 1 << 20, 1, false);
        assert!(!rank.contest.is_for_lanes());
    }

    #[test]
    fn large_payloads_from_two_ranks_in_turn_are_compared_with_their_like() {
        // Payloads of one rank take four times as long, so the winner must not be the path of the other rank.
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
