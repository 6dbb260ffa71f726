//! Auto-tuner that selects the faster copy path at run time, while payloads are fetched: kernel copies,
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
//! Payloads that could be sent eagerly, larger ones, and those that fill a cache are compared separately: for one kind the
//! kernel may be twice as fast as a lane where it is hardly faster, or half as fast, for another. Each kind is slower while
//! payloads of another kind are in flight; the use of medians compensates for that.

use crate::selection::LONG_HEADER;
use crate::table::EAGER_MAX;
use std::time::{Duration, Instant};

/// The path in each measurement interval of a trial; the median of each path counts. The paths do not strictly
/// alternate: otherwise, with large payloads from two ranks in turn, all payloads of one rank could use the same
/// path.
const TURNS: [CopyPath; 6] =
    [CopyPath::Kernel, CopyPath::Lane, CopyPath::Lane, CopyPath::Kernel, CopyPath::Lane, CopyPath::Kernel];

/// Bytes that are measured in an interval (`TURN`), and bytes before them that are not (`START`), since a window of
/// payloads begins with their headers. Both are at least the size of a payload: the first payload may be the first to
/// touch its memory, and each payload begins in another cache than the one in which the previous payload ended.
const TURN: u64 = 4 << 20;
const START: u64 = 1 << 20;

/// Largest payload size that extends an interval.
const TURN_MOST: u64 = 64 << 20;

/// Size in bytes of the smallest payload that fills a cache.
const LARGE: u64 = 8 << 20;

/// The winner of a trial is kept for `KEPT` times the bytes of the trial, of which at most `KEPT_OF_MOST` count.
const KEPT: u64 = 50;
const KEPT_OF_MOST: u64 = 512 << 20;

/// Copy path of a payload that is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyPath {
    /// The kernel copies, for the receiver or for both sides.
    Kernel,
    /// Both sides copy, through a lane.
    Lane,
}

/// Selects the copy path for all payloads that a rank fetches from ranks whose memory it can map or copy directly.
#[derive(Debug)]
pub struct CopyTuners {
    small: CopyTuner,
    medium: CopyTuner,
    large: CopyTuner,
}

/// Selects the copy path for payloads of one size class.
#[derive(Debug)]
pub struct CopyTuner {
    copy_path: CopyPath,
    /// Number of payloads that are being fetched by each path.
    open: [u32; 2],
    /// The trial in progress; None while the better path is kept.
    trial: Option<Trial>,
    /// Bytes until the next trial.
    left: u64,
    /// True if the time between fetches counts, too (oversubscribed ranks).
    oversubscribed: bool,
    /// Bytes of an interval, if no payload is larger.
    turn: u64,
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

impl CopyPath {
    fn other(self) -> CopyPath {
        match self {
            CopyPath::Kernel => CopyPath::Lane,
            CopyPath::Lane => CopyPath::Kernel,
        }
    }
}

/// Returns true for a payload that could be sent eagerly, so that rendezvous is optional.
pub fn is_small(size: u64) -> bool {
    size + LONG_HEADER as u64 <= EAGER_MAX.most
}

impl CopyTuners {
    /// Returns tuners that begin with trials. `oversubscribed` is true if there are more ranks than cores.
    pub fn new(oversubscribed: bool) -> CopyTuners {
        let [small, medium, large] = std::array::from_fn(|_| CopyTuner::new(oversubscribed));
        CopyTuners { small, medium, large }
    }

    /// Returns the tuner for a payload of `size` bytes.
    pub fn of(&mut self, size: u64) -> &mut CopyTuner {
        match size {
            size if is_small(size) => &mut self.small,
            size if size < LARGE => &mut self.medium,
            _ => &mut self.large,
        }
    }

    /// Returns true if lanes have won for small payloads, and no trial is running.
    pub fn are_for_lanes(&self) -> bool {
        self.small.is_for_lanes()
    }
}

impl CopyTuner {
    /// Returns a tuner that begins with a trial. `oversubscribed` is true if there are more ranks than cores.
    pub fn new(oversubscribed: bool) -> CopyTuner {
        CopyTuner {
            copy_path: TURNS[0],
            open: [0; 2],
            trial: Some(Trial::default()),
            left: 0,
            oversubscribed,
            turn: TURN,
        }
    }

    /// Returns the tuner with `factor` times as long intervals, for payloads that follow each other so closely that other
    /// processes disturb a short one.
    pub fn with_longer_turns(self, factor: u64) -> CopyTuner {
        CopyTuner { turn: self.turn * factor, ..self }
    }

    /// Returns the tuner as after a trial of average length that the kernel has won, for payloads for which it is usually
    /// faster: a trial would take a good part of a short run.
    pub fn with_kernel_at_first(self) -> CopyTuner {
        CopyTuner { copy_path: CopyPath::Kernel, left: KEPT * TURNS.len() as u64 * self.turn, trial: None, ..self }
    }

    fn is_for_lanes(&self) -> bool {
        self.trial.is_none() && self.copy_path == CopyPath::Lane
    }

    /// Returns true while both paths are being tried.
    pub fn is_trying(&self) -> bool {
        self.trial.is_some()
    }

    /// Returns the path of the next payload.
    pub fn copy_path(&self) -> CopyPath {
        self.copy_path
    }

    /// Records the start of a fetch of `size` bytes; returns its copy path.
    pub fn begin(&mut self, size: u64, now: impl FnOnce() -> Instant) -> CopyPath {
        if let Some(trial) = &mut self.trial {
            trial.largest = trial.largest.max(size.min(TURN_MOST));
            if self.open == [0; 2] {
                trial.turn.since.get_or_insert_with(now);
            }
        }
        self.open[self.copy_path as usize] += 1;
        self.copy_path
    }

    /// Records the arrival of `bytes` more bytes. Returns the result of a trial if this ends one.
    pub fn moved(&mut self, copy_path: CopyPath, bytes: u64, now: impl FnOnce() -> Instant) -> Option<Outcome> {
        let Some(trial) = &mut self.trial else {
            self.left = self.left.saturating_sub(bytes);
            if self.left == 0 {
                self.try_again();
            }
            return None;
        };
        trial.bytes += bytes;
        let turn = &mut trial.turn;
        let since = turn.since.filter(|_| copy_path == self.copy_path)?;
        turn.bytes += bytes;
        if !turn.counts && turn.bytes >= START.max(trial.largest) {
            *turn = Turn { counts: true, since: Some(now()), ..Turn::default() };
            return None;
        }
        if turn.bytes < self.turn.max(trial.largest) {
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
            if next == self.copy_path {
                trial.turn.since = (self.open[next as usize] > 0 || self.oversubscribed).then_some(now);
            }
            self.copy_path = next;
            return None;
        }
        let [kernel, lane] = [CopyPath::Kernel, CopyPath::Lane].map(|copy_path| {
            let turns = trial.rates.iter().zip(TURNS).filter(|(_, turn)| *turn == copy_path);
            let mut rates: Vec<f64> = turns.map(|(rate, _)| *rate).collect();
            rates.sort_by(f64::total_cmp);
            rates[rates.len() / 2]
        });
        self.left = KEPT * trial.bytes.min(KEPT_OF_MOST);
        self.copy_path = if lane > kernel { CopyPath::Lane } else { CopyPath::Kernel };
        self.trial = None;
        Some(Outcome { kernel, lane })
    }

    /// Records that the kernel has refused a copy, which counts as an interval at rate 0. The caller fetches the
    /// payload by the other path.
    pub fn refused(&mut self, now: impl FnOnce() -> Instant) {
        let now = now();
        self.end(CopyPath::Kernel, || now);
        match self.copy_path {
            CopyPath::Kernel if self.trial.is_some() => drop(self.over(0.0, now)),
            CopyPath::Kernel => self.try_again(),
            CopyPath::Lane => {}
        }
    }

    /// Starts a new trial, although one path has won.
    pub fn try_again(&mut self) {
        (self.copy_path, self.trial) = (TURNS[0], Some(Trial::default()));
    }

    /// Records the end of a fetch: all bytes are here, or the sender is lost and no more will arrive.
    pub fn end(&mut self, copy_path: CopyPath, now: impl FnOnce() -> Instant) {
        self.open[copy_path as usize] = self.open[copy_path as usize].saturating_sub(1);
        let Some(trial) = &mut self.trial else { return };
        let others = self.open[self.copy_path.other() as usize];
        match (self.open[self.copy_path as usize], trial.turn.since) {
            (0, Some(since)) if !self.oversubscribed => {
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
        copy_tuner: CopyTuner,
        now: Instant,
        speeds: [u64; 2],
        bytes: [u64; 2],
        outcomes: Vec<Outcome>,
    }

    /// Size of a chunk in bytes.
    const PIECE: u64 = 16 << 10;

    impl Rank {
        fn new(kernel: u64, lane: u64) -> Rank {
            let (copy_tuner, speeds) = (CopyTuner::new(false), [kernel, lane]);
            Rank { copy_tuner, now: Instant::now(), speeds, bytes: [0; 2], outcomes: Vec::new() }
        }

        /// Fetches payloads, `at_once` of them concurrently, and computes whenever none is left if `computes` is
        /// true.
        fn fetch(&mut self, payloads: usize, size: u64, at_once: usize, computes: bool) {
            let mut open = VecDeque::new();
            for i in 0..payloads {
                let now = self.now;
                open.push_back(self.copy_tuner.begin(size, || now));
                while open.len() >= at_once || i + 1 == payloads && !open.is_empty() {
                    let copy_path = open.pop_front().unwrap();
                    self.take(copy_path, size);
                }
                if computes && open.is_empty() {
                    self.now += Duration::from_millis(3);
                }
            }
        }

        fn take(&mut self, copy_path: CopyPath, size: u64) {
            for at in (0..size).step_by(PIECE as usize) {
                let piece = PIECE.min(size - at);
                self.now += Duration::from_nanos(piece / self.speeds[copy_path as usize]);
                self.bytes[copy_path as usize] += piece;
                let now = self.now;
                self.outcomes.extend(self.copy_tuner.moved(copy_path, piece, || now));
            }
            let now = self.now;
            self.copy_tuner.end(copy_path, || now);
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
        let run = |oversubscribed, wait| {
            let mut rank = Rank::new(30, 10);
            rank.copy_tuner = CopyTuner::new(oversubscribed);
            for _ in 0..10_000 {
                if rank.copy_tuner.copy_path == CopyPath::Kernel {
                    rank.now += wait;
                }
                rank.fetch(3, 64 << 10, 1, false);
            }
            assert!(!rank.outcomes.is_empty());
            rank.copy_tuner.is_for_lanes()
        };
        let [none, long] = [0, 20].map(Duration::from_micros);
        assert_eq!([run(true, none), run(true, long)], [false, true]);
        assert_eq!([run(false, none), run(false, long)], [false, false]);
    }

    #[test]
    fn a_machine_that_changes_is_noticed() {
        let mut rank = Rank::new(10, 30);
        rank.fetch(1000, 1 << 20, 1, false);
        assert!(rank.copy_tuner.is_for_lanes());
        let Outcome { kernel, lane } = rank.outcomes[0];
        assert!(lane > 2.9 * kernel && lane < 3.1 * kernel, "{:?}", rank.outcomes);
        rank.speeds = [30, 10];
        rank.fetch(1000, 1 << 20, 1, false);
        assert!(!rank.copy_tuner.is_for_lanes());
    }

    #[test]
    fn while_both_ways_are_under_way_nothing_counts() {
        // Windows of 64 payloads, all of which are accepted before the first one has arrived.
        let mut rank = Rank::new(10, 30);
        for _ in 0..100 {
            let now = rank.now;
            let open: Vec<CopyPath> = (0..64).map(|_| rank.copy_tuner.begin(1 << 20, || now)).collect();
            open.into_iter().for_each(|copy_path| rank.take(copy_path, 1 << 20));
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
            match rank.copy_tuner.begin(1 << 20, || now) {
                CopyPath::Kernel => rank.copy_tuner.refused(|| now),
                CopyPath::Lane => rank.take(CopyPath::Lane, 1 << 20),
            }
            assert_eq!(rank.copy_tuner.open, [0; 2]);
        }
        assert!(rank.copy_tuner.is_for_lanes() && rank.share_of_lanes() == 1.0);
        // A kernel that no longer refuses is detected.
        rank.copy_tuner.try_again();
        rank.fetch(1000, 1 << 20, 1, false);
        assert!(!rank.copy_tuner.is_for_lanes());
    }

    #[test]
    fn large_payloads_from_two_ranks_in_turn_are_compared_with_their_like() {
        // Payloads of one rank take four times as long, so the winner must not be the path of the other rank.
        let mut rank = Rank::new(10, 30);
        for turn in 0..40 {
            rank.speeds = if turn % 2 == 0 { [40, 120] } else { [10, 30] };
            rank.fetch(1, 8 << 20, 1, false);
        }
        assert!(rank.copy_tuner.is_for_lanes(), "{:?}", rank.outcomes);
        let mut rank = Rank::new(30, 10);
        for turn in 0..40 {
            rank.speeds = if turn % 2 == 0 { [30, 10] } else { [120, 40] };
            rank.fetch(1, 8 << 20, 1, false);
        }
        assert!(!rank.copy_tuner.is_for_lanes(), "{:?}", rank.outcomes);
    }

    #[test]
    fn who_is_lost_leaves_nothing_behind() {
        let mut rank = Rank::new(10, 30);
        let now = rank.now;
        let copy_path = rank.copy_tuner.begin(1 << 20, || now);
        rank.now += Duration::from_secs(100);
        rank.copy_tuner.end(copy_path, || now);
        assert_eq!(rank.copy_tuner.open, [0; 2]);
        rank.fetch(1000, 1 << 20, 1, false);
        assert!(rank.copy_tuner.is_for_lanes());
    }

    #[test]
    fn a_kernel_that_is_used_at_first_is_compared_later() {
        let mut rank = Rank::new(10, 30);
        rank.copy_tuner = CopyTuner::new(false).with_kernel_at_first();
        rank.fetch(100, 1 << 20, 1, false);
        assert!(!rank.copy_tuner.is_trying() && rank.share_of_lanes() == 0.0);
        rank.fetch(2000, 1 << 20, 1, false);
        assert!(rank.copy_tuner.is_for_lanes());
    }

    #[test]
    fn kinds_of_payloads_have_tuners_of_their_own() {
        let mut copy_tuners = CopyTuners::new(false);
        let mut fetch = |size: u64, speeds: [u64; 2]| {
            let copy_tuner = std::mem::replace(copy_tuners.of(size), CopyTuner::new(false));
            let mut rank = Rank { copy_tuner, ..Rank::new(speeds[0], speeds[1]) };
            rank.fetch((3 << 30) / size as usize, size, 3, false);
            *copy_tuners.of(size) = rank.copy_tuner;
        };
        fetch(64 << 10, [10, 12]);
        fetch(1 << 20, [30, 13]);
        fetch(32 << 20, [13, 30]);
        assert!(copy_tuners.are_for_lanes());
        let eager_max = EAGER_MAX.most - LONG_HEADER as u64;
        let are_for_lanes = [1, eager_max, eager_max + 1, LARGE - 1, LARGE].map(|n| copy_tuners.of(n).is_for_lanes());
        assert_eq!(are_for_lanes, [true, true, false, false, true]);
    }
}
