//! Time stamps, and their conversion to nanoseconds of CLOCK_MONOTONIC.
//!
//! A time stamp is read from the processor's time stamp counter if the kernel keeps its time by it, which takes half as
//! long as asking for CLOCK_MONOTONIC; elsewhere it is the nanoseconds of that clock. Pairs of both, which are taken
//! now and then, give the conversion.

/// The source of time stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The processor's time stamp counter.
    #[cfg(target_arch = "x86_64")]
    Counter,
    /// Nanoseconds of CLOCK_MONOTONIC.
    Monotonic,
}

impl Clock {
    /// Returns the source for this machine.
    pub fn of_machine() -> Clock {
        #[cfg(target_arch = "x86_64")]
        {
            let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
            if std::fs::read_to_string(source).is_ok_and(|name| name.trim() == "tsc") {
                return Clock::Counter;
            }
        }
        Clock::Monotonic
    }

    /// Returns the present time stamp; never 0.
    #[inline(always)]
    pub fn stamp(self) -> u64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: every x86-64 processor has the instruction, which only reads a counter.
            Clock::Counter => unsafe { std::arch::x86_64::_rdtsc() },
            Clock::Monotonic => nanoseconds(libc::CLOCK_MONOTONIC),
        }
    }

    /// Returns a time stamp and the nanoseconds of CLOCK_MONOTONIC at the same time. An interruption between the two is
    /// noticed, and they are read again.
    pub fn pair(self) -> (u64, u64) {
        let read = || {
            let before = self.stamp();
            let time = nanoseconds(libc::CLOCK_MONOTONIC);
            let after = self.stamp();
            (after.wrapping_sub(before), (before + (after.wrapping_sub(before)) / 2, time))
        };
        let mut best = read();
        for _ in 0..2 {
            // About 250 ns; only the first reading of a process takes longer without an interruption.
            if best.0 < 1000 {
                break;
            }
            best = std::cmp::min(best, read());
        }
        best.1
    }
}

/// Returns the nanoseconds of a clock of the kernel.
pub fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live local variable that the kernel fills; both clocks in use exist on every Linux kernel.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Distance between two pairs of a conversion, ns: the error of each is then small compared to it.
const APART: u64 = 100_000_000;

/// The conversion of time stamps to nanoseconds: continuous, and later stamps have later times.
pub struct Conversion {
    pairs: Vec<(u64, u64)>,
}

impl Conversion {
    /// Creates the conversion from pairs of stamps and nanoseconds, in any order; there must be one at least.
    pub fn new(mut pairs: Vec<(u64, u64)>) -> Conversion {
        pairs.sort_unstable();
        let last = pairs.last().copied();
        let mut kept: Vec<(u64, u64)> = Vec::new();
        for pair in pairs {
            if kept.last().is_none_or(|(_, before)| pair.1 >= before + APART) {
                kept.push(pair);
            }
        }
        // The last pair stands for the one before it if they are close to each other.
        if let Some(last) = last.filter(|last| kept.last() != Some(last)) {
            if kept.len() > 1 {
                kept.pop();
            }
            kept.push(last);
        }
        Conversion { pairs: kept }
    }

    /// Returns the nanoseconds of a time stamp.
    pub fn nanoseconds(&self, stamp: u64) -> i64 {
        let after = self.pairs.partition_point(|pair| pair.0 <= stamp);
        let end = after.clamp(1, self.pairs.len().max(2) - 1);
        let ((at, time), next) = (self.pairs[end - 1], self.pairs.get(end).copied());
        let passed = i128::from(stamp) - i128::from(at);
        let scaled = match next {
            Some((stamp, later)) if stamp > at && later > time => {
                passed * i128::from(later - time) / i128::from(stamp - at)
            }
            _ => passed,
        };
        (i128::from(time) + scaled) as i64
    }
}
