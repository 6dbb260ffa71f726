//! Auto-tuner that selects the fastest chunking policy (chunk size and wrap length) at run time, while chunks stream.
//!
//! On some processors chunks in [short laps](super::chunking) are much faster. On others they are much slower: all data
//! that is read has only just been written, and comes line by line out of the nearest cache of the core that wrote
//! it. Some processors copy a large chunk much faster than several small ones. No query tells which case applies, and
//! a hypervisor may change it at any time. The tuner therefore tries all policies for a while, keeps the best one for
//! long, and then tries all again.
//!
//! The measure is the rate at which the consumer frees lines, not the rate of production, because an empty lane
//! accepts much at once. The fastest interval of each trial counts, since in others there may have been nothing to
//! send. Every policy is tried in two passes: the traffic may have changed during a pass, and a policy that was tried
//! later would then appear faster.

use super::LINE;
use std::time::Instant;

/// Number of chunking policies. Earlier ones need fewer head updates.
pub(super) const POLICIES: usize = 3;

/// Lines between two clock readings. They hold so many chunks of the largest size that one more or less does not
/// matter.
const STRETCH: u64 = (2 << 20) / LINE as u64;

/// Number of measured intervals of a trial.
const COUNTED: u32 = 2;

/// Number of trials of each policy.
const PASSES: usize = 2;

/// Lines until all policies are tried again: the slower ones then cost about 1 % of the time.
const KEPT: u64 = (2 << 30) / LINE as u64;

/// Factor by which a later policy must be faster than an earlier one, in each pass.
const WORTH: f64 = 1.1;

/// Auto-tuner of the chunking policy of one producer.
#[derive(Debug)]
pub(super) struct ChunkTuner {
    /// Index of the current policy.
    policy: usize,
    /// Number of the current interval of a trial; None while the best policy is kept.
    stretch: Option<u32>,
    /// Number of completed passes over all policies.
    pass: usize,
    /// Number of lines of entries (without padding) at which the next decision is due.
    due: u64,
    /// Number of lines freed and the time, at the start of the interval; None before the first interval.
    began: Option<(u64, Instant)>,
    /// Best rate of each policy in each pass, in lines per second.
    best: [[f64; POLICIES]; PASSES],
    /// Total number of padding lines.
    filled: u64,
    /// The latest padding, as its first tail and the tail after it.
    filling: (u64, u64),
}

impl ChunkTuner {
    /// Returns a tuner that begins with a trial of the first policy.
    pub(super) fn new() -> Self {
        let best = [[0.0; POLICIES]; PASSES];
        ChunkTuner { policy: 0, stretch: Some(0), pass: 0, due: 0, began: None, best, filled: 0, filling: (0, 0) }
    }

    /// Returns true during a trial. The head must then be known more precisely than to half a lane.
    #[inline]
    pub(super) fn is_trying(&self) -> bool {
        self.stretch.is_some()
    }

    /// Returns true if [`ChunkTuner::choose`] has a decision to make at this tail.
    #[inline]
    pub(super) fn is_due(&self, tail: u64) -> bool {
        tail - self.filled >= self.due
    }

    /// Records `lines` lines of padding that begin at `tail`.
    pub(super) fn filled(&mut self, tail: u64, lines: u64) {
        self.filled += lines;
        self.filling = (tail, tail + lines);
    }

    /// Ends an interval and returns the index of the policy to use from now on.
    pub(super) fn choose(&mut self, head: u64, tail: u64, now: Instant) -> usize {
        self.due = tail - self.filled + STRETCH;
        let Some(stretch) = self.stretch else { return self.begin(0, 0) };
        let left = self.left(head, tail);
        if let Some((from, at)) = self.began {
            let seconds = now.saturating_duration_since(at).as_secs_f64().max(1e-9);
            let best = &mut self.best[self.pass][self.policy];
            *best = best.max(left.saturating_sub(from) as f64 / seconds);
        }
        // The first interval does not count: it may contain chunks of the previous policy, or have begun with an
        // empty lane.
        (self.began, self.stretch) = (Some((left, now)), Some(stretch + 1));
        match self.policy + 1 {
            _ if stretch < COUNTED => self.policy,
            POLICIES if self.pass + 1 < PASSES => self.begin(self.pass + 1, 0),
            POLICIES => self.keep(),
            next => self.begin(self.pass, next),
        }
    }

    /// Number of lines of entries that the consumer has freed. At most one padding lies between head and tail.
    fn left(&self, head: u64, tail: u64) -> u64 {
        let (from, to) = self.filling;
        let under_way = tail - head - to.saturating_sub(from.max(head));
        tail - self.filled - under_way
    }

    fn begin(&mut self, pass: usize, policy: usize) -> usize {
        (self.pass, self.policy, self.stretch, self.began) = (pass, policy, Some(0), None);
        self.best[pass][policy] = 0.0;
        policy
    }

    fn keep(&mut self) -> usize {
        let is_better = |policy: usize, kept: usize| self.best.iter().all(|best| best[policy] > WORTH * best[kept]);
        let better = |kept, policy| if is_better(policy, kept) { policy } else { kept };
        (self.policy, self.stretch) = ((1..POLICIES).fold(0, better), None);
        self.due += KEPT;
        self.policy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;
    use std::time::Duration;

    const LINES: u64 = 1000;
    const CHUNK: u64 = 65;

    /// A simulated stream with its speed under each policy, in lines per microsecond. The last policy has short laps.
    struct Stream {
        tuner: ChunkTuner,
        tail: u64,
        now: Instant,
        speeds: [u64; POLICIES],
        policy: usize,
        /// Number of chunks under each policy.
        chunks: [u64; POLICIES],
    }

    impl Stream {
        fn new(speeds: [u64; POLICIES]) -> Stream {
            Stream { tuner: ChunkTuner::new(), tail: 0, now: Instant::now(), speeds, policy: 0, chunks: [0; POLICIES] }
        }

        /// Produces chunks, of which two are in flight. `pause` selects the chunks before which there was nothing to
        /// send.
        fn go(&mut self, chunks: usize, pause: impl Fn(usize) -> bool) {
            for chunk in 0..chunks {
                if self.tuner.is_due(self.tail) {
                    let head = self.tail.saturating_sub(2 * CHUNK);
                    self.policy = self.tuner.choose(head, self.tail, self.now);
                }
                let lap = if self.policy == POLICIES - 1 { 3 * CHUNK } else { LINES };
                if self.tail % LINES + CHUNK > lap {
                    let rest = LINES - self.tail % LINES;
                    self.tuner.filled(self.tail, rest);
                    self.tail += rest;
                }
                self.tail += CHUNK;
                self.chunks[self.policy] += 1;
                self.now += Duration::from_nanos(CHUNK * 1000 / self.speeds[self.policy]);
                if pause(chunk) {
                    self.now += Duration::from_millis(1);
                }
            }
        }

        fn share_of(&self, policy: usize) -> f64 {
            self.chunks[policy] as f64 / self.chunks.iter().sum::<u64>() as f64
        }
    }

    /// More chunks than one trial and the time for which its result is kept.
    const MANY: usize = 800_000;

    #[test]
    fn the_fastest_policy_is_kept() {
        const MOST: Range<f64> = 0.97..1.0;
        for (speeds, fastest) in [
            ([100, 100, 200], 2),
            ([200, 100, 100], 0),
            ([100, 200, 100], 1),
            ([100, 120, 140], 2),
            ([100, 120, 125], 1),
            ([100, 105, 105], 0),
            ([100, 100, 100], 0),
        ] {
            let mut stream = Stream::new(speeds);
            stream.go(MANY, |_| false);
            let share = stream.share_of(fastest);
            assert!(MOST.contains(&share), "{speeds:?}: {share} in policy {fastest}");
        }
    }

    #[test]
    fn pauses_do_not_count() {
        for (speeds, fastest) in [([100, 100, 200], 2), ([200, 100, 100], 0), ([100, 200, 100], 1)] {
            let mut stream = Stream::new(speeds);
            stream.go(MANY / 50, |chunk| chunk % 1200 == 0);
            assert!(!stream.tuner.is_trying());
            assert_eq!(stream.policy, fastest);
        }
    }

    #[test]
    fn what_was_better_may_be_worse_later() {
        let mut stream = Stream::new([100, 150, 200]);
        stream.go(MANY / 50, |_| false);
        assert_eq!(stream.policy, 2);
        stream.speeds.reverse();
        stream.go(MANY, |_| false);
        assert_eq!(stream.policy, 0);
    }

    #[test]
    fn a_head_that_stands_still_speaks_for_the_first_policy() {
        let (mut tuner, now, mut tail) = (ChunkTuner::new(), Instant::now(), 0);
        while tuner.is_trying() {
            tail += STRETCH;
            tuner.choose(0, tail, now);
        }
        assert_eq!((tuner.policy, tuner.best), (0, [[0.0; POLICIES]; PASSES]));
    }

    #[test]
    fn a_stream_that_changes_while_policies_are_tried_speaks_for_none() {
        // For example from rendezvous payloads to others, or back, at any time.
        for (before, after) in [(100, 200), (200, 100)] {
            for change in (0..MANY / 50).step_by(100) {
                let mut stream = Stream::new([before; POLICIES]);
                stream.go(change, |_| false);
                stream.speeds = [after; POLICIES];
                stream.go(MANY / 50 - change, |_| false);
                assert_eq!((stream.policy, stream.tuner.is_trying()), (0, false), "after {change} chunks");
            }
        }
    }

    #[test]
    fn fillings_are_not_counted_wherever_the_head_is() {
        let mut tuner = ChunkTuner::new();
        tuner.filled(300, 700);
        tuner.filled(1200, 800);
        for (head, left) in [(1000, 300), (1100, 400), (1200, 500), (2000, 500), (2100, 600)] {
            assert_eq!(tuner.left(head, 2100), left, "head {head}");
        }
    }
}
