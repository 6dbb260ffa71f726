//! Which laps are the faster ones here, found out while pieces stream.
//!
//! On some processors pieces in [short laps](super::pieces) are much faster; on others they are much slower, since all that
//! is read has been written only just now, and comes line by line out of the nearest cache of the core that wrote it. Nothing
//! that can be asked for tells which it is, and a hypervisor may change it at any time. So both are tried for a while, the
//! better is kept for long, and then both are tried again.
//!
//! What counts is what the consumer has left, not what was produced: an empty lane takes much at once. Of each try the
//! fastest stretch counts, for in others there may have been nothing to send.

use super::LINE;
use std::time::Instant;

/// Lines between two looks at the clock.
const STRETCH: u64 = (256 << 10) / LINE as u64;

/// Stretches of a try that count.
const COUNTED: u32 = 5;

/// Lines until both are tried again: the worse costs less than a hundredth.
const KEPT: u64 = (256 << 20) / LINE as u64;

/// Long laps need fewer heads, so short ones have to be faster by this.
const WORTH: f64 = 1.1;

/// Chooses the laps of one producer's pieces.
#[derive(Debug)]
pub(super) struct Pace {
    /// Whether laps are short now.
    short: bool,
    /// Which stretch of a try this is; None while the better laps are kept.
    stretch: Option<u32>,
    /// Lines of entries to be produced before there is something to be decided.
    due: u64,
    /// What was left, and when, at the beginning of the stretch.
    began: Option<(u64, Instant)>,
    /// Lines a second: the best of long and of short laps.
    best: [f64; 2],
    /// Lines of fillings, all together.
    filled: u64,
    /// The latest of them: from which tail to which.
    filling: (u64, u64),
}

impl Pace {
    /// Begins with a try of long laps.
    pub(super) fn new() -> Self {
        Pace { short: false, stretch: Some(0), due: 0, began: None, best: [0.0; 2], filled: 0, filling: (0, 0) }
    }

    /// Whether laps are being compared, so that the head must be known better than to half a lane.
    #[inline]
    pub(super) fn is_trying(&self) -> bool {
        self.stretch.is_some()
    }

    /// Whether [`Pace::choose`] has something to decide at this tail.
    #[inline]
    pub(super) fn is_due(&self, tail: u64) -> bool {
        tail - self.filled >= self.due
    }

    /// Takes note of a filling of so many lines.
    pub(super) fn filled(&mut self, tail: u64, lines: u64) {
        self.filled += lines;
        self.filling = (tail, tail + lines);
    }

    /// Whether laps are to be short from now on.
    pub(super) fn choose(&mut self, head: u64, tail: u64, now: Instant) -> bool {
        self.due = tail - self.filled + STRETCH;
        let Some(stretch) = self.stretch else { return self.begin(false) };
        let left = self.left(head, tail);
        if let Some((from, at)) = self.began {
            let seconds = now.saturating_duration_since(at).as_secs_f64().max(1e-9);
            let best = &mut self.best[usize::from(self.short)];
            *best = best.max(left.saturating_sub(from) as f64 / seconds);
        }
        // What comes first may be in the laps before, or have found the lane empty.
        (self.began, self.stretch) = (Some((left, now)), Some(stretch + 1));
        match (stretch < COUNTED, self.short) {
            (true, short) => short,
            (false, false) => self.begin(true),
            (false, true) => self.keep(),
        }
    }

    /// Lines of entries that the consumer has left. There is one filling at most between head and tail.
    fn left(&self, head: u64, tail: u64) -> u64 {
        let (from, to) = self.filling;
        let under_way = tail - head - to.saturating_sub(from.max(head));
        tail - self.filled - under_way
    }

    fn begin(&mut self, short: bool) -> bool {
        (self.short, self.stretch, self.began) = (short, Some(0), None);
        self.best[usize::from(short)] = 0.0;
        short
    }

    fn keep(&mut self) -> bool {
        let [long, short] = self.best;
        (self.short, self.stretch) = (short > WORTH * long, None);
        self.due += KEPT;
        self.short
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const LINES: u64 = 1000;
    const PIECE: u64 = 65;

    /// A stream, and how fast it would be in long and in short laps, lines a microsecond.
    struct Stream {
        pace: Pace,
        tail: u64,
        now: Instant,
        speeds: [u64; 2],
        short: bool,
        /// Pieces in long and in short laps.
        pieces: [u64; 2],
    }

    impl Stream {
        fn new(long: u64, short: u64) -> Stream {
            let (pace, speeds) = (Pace::new(), [long, short]);
            Stream { pace, tail: 0, now: Instant::now(), speeds, short: false, pieces: [0; 2] }
        }

        /// Produces pieces, of which two are under way; before some of them there was nothing to send.
        fn go(&mut self, pieces: usize, pause: impl Fn(usize) -> bool) {
            for piece in 0..pieces {
                if self.pace.is_due(self.tail) {
                    let head = self.tail.saturating_sub(2 * PIECE);
                    self.short = self.pace.choose(head, self.tail, self.now);
                }
                let lap = if self.short { 3 * PIECE } else { LINES };
                if self.tail % LINES + PIECE > lap {
                    let rest = LINES - self.tail % LINES;
                    self.pace.filled(self.tail, rest);
                    self.tail += rest;
                }
                self.tail += PIECE;
                self.pieces[usize::from(self.short)] += 1;
                self.now += Duration::from_nanos(PIECE * 1000 / self.speeds[usize::from(self.short)]);
                if pause(piece) {
                    self.now += Duration::from_millis(1);
                }
            }
        }

        fn share_of_short(&self) -> f64 {
            self.pieces[1] as f64 / (self.pieces[0] + self.pieces[1]) as f64
        }
    }

    /// Pieces that are more than one try and what is kept after it.
    const MANY: usize = 100_000;

    #[test]
    fn the_faster_laps_are_kept() {
        for (long, short, shares) in
            [(100, 200, 0.98..1.0), (200, 100, 0.0..0.01), (100, 105, 0.0..0.01), (100, 100, 0.0..0.01)]
        {
            let mut stream = Stream::new(long, short);
            stream.go(MANY, |_| false);
            let share = stream.share_of_short();
            assert!(shares.contains(&share), "long {long}, short {short}: {share} in short laps");
        }
    }

    #[test]
    fn pauses_do_not_count() {
        for (long, short) in [(100, 200), (200, 100)] {
            let mut stream = Stream::new(long, short);
            stream.go(MANY / 50, |piece| piece % 150 == 0);
            assert!(!stream.pace.is_trying());
            assert_eq!(stream.short, short > long);
        }
    }

    #[test]
    fn what_was_better_may_be_worse_later() {
        let mut stream = Stream::new(100, 200);
        stream.go(MANY / 50, |_| false);
        assert!(stream.short);
        stream.speeds.reverse();
        stream.go(MANY, |_| false);
        assert!(!stream.short);
    }

    #[test]
    fn a_head_that_stands_still_speaks_for_long_laps() {
        let (mut pace, now, mut tail) = (Pace::new(), Instant::now(), 0);
        while pace.is_trying() {
            tail += STRETCH;
            pace.choose(0, tail, now);
        }
        assert_eq!((pace.short, pace.best), (false, [0.0; 2]));
    }

    #[test]
    fn fillings_are_not_counted_wherever_the_head_is() {
        let mut pace = Pace::new();
        pace.filled(300, 700);
        pace.filled(1200, 800);
        for (head, left) in [(1000, 300), (1100, 400), (1200, 500), (2000, 500), (2100, 600)] {
            assert_eq!(pace.left(head, 2100), left, "head {head}");
        }
    }
}
