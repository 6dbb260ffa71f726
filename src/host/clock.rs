//! The monotonic clock, which all processes of the machine share, and waiting until a given time.

use std::time::Duration;

/// Waits longer than this, ns, sleep in the kernel; shorter ones spin or yield.
const WORTH_SLEEPING: u64 = 150_000;
/// Assumed maximum oversleep of the kernel's sleep, ns; it is subtracted from the sleep's length.
const SLACK: u64 = 100_000;

/// Returns the time of CLOCK_MONOTONIC, ns.
#[inline]
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live local variable that the kernel fills; CLOCK_MONOTONIC exists on every Linux kernel.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns at the time `moment` (ns of CLOCK_MONOTONIC), or at once if it has passed. Longer waits yield the core.
pub fn wait_until(moment: u64) {
    loop {
        let left = moment.saturating_sub(now());
        match left {
            0 => return,
            // A yield takes about 500 ns, so shorter waits spin.
            1..=500 => std::hint::spin_loop(),
            501..=WORTH_SLEEPING => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_nanos(left - SLACK)),
        }
    }
}
