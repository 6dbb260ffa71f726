//! The clock that all processes of the machine share, and waiting for a moment of it.

use std::time::Duration;

/// Sleeping longer than that is left to the kernel, ns; less is waited out with yields.
const WORTH_SLEEPING: u64 = 150_000;
/// How much too long a sleep may be, ns.
const SLACK: u64 = 100_000;

/// Nanoseconds of CLOCK_MONOTONIC.
#[inline]
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is ours; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns at that moment, or at once if it is past. Others may have the core meanwhile.
pub fn wait_until(moment: u64) {
    loop {
        let left = moment.saturating_sub(now());
        match left {
            0 => return,
            // Yielding takes about as long.
            1..=500 => std::hint::spin_loop(),
            501..=WORTH_SLEEPING => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_nanos(left - SLACK)),
        }
    }
}
