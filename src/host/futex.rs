//! The futex system call, shared between processes.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while the word has the value, until it is woken, a signal comes or the time is over.
pub fn wait(word: &AtomicU32, value: u32, timeout: Duration) {
    let time =
        libc::timespec { tv_sec: timeout.as_secs() as libc::time_t, tv_nsec: timeout.subsec_nanos() as libc::c_long };
    // SAFETY: the word is a live, aligned 32-bit word; the kernel only reads it and the time.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &time as *const libc::timespec) };
}

/// Wakes everybody who sleeps on the word.
pub fn wake(word: &AtomicU32) {
    // SAFETY: the word is a live, aligned 32-bit word; the kernel does not access its value.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
