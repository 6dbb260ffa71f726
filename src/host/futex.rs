//! The futex system call on words in memory that processes share.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps if the word has the given value, until [`wake`], a signal or the timeout.
pub fn wait(word: &AtomicU32, value: u32, timeout: Duration) {
    let time =
        libc::timespec { tv_sec: timeout.as_secs() as libc::time_t, tv_nsec: timeout.subsec_nanos() as libc::c_long };
    // SAFETY: `word` is a live, aligned 32-bit atomic and `time` a live local; the kernel only reads both.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &time as *const libc::timespec) };
}

/// Wakes all threads of all processes that sleep on the word.
pub fn wake(word: &AtomicU32) {
    // SAFETY: `word` is a live, aligned 32-bit atomic; the kernel uses only its address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
