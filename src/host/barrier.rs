//! Barriers of unequal weight. Whoever goes to sleep pays for both sides: it makes every processor
//! that runs one of the job's processes pass a memory barrier, so that whoever rings a doorbell
//! needs none, which is what a message would cost most.

use std::sync::atomic::{compiler_fence, fence, Ordering};
use std::sync::OnceLock;

fn membarrier(command: libc::c_int) -> libc::c_long {
    // SAFETY: the call takes three numbers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}

/// Whether this process takes part, as it does from its first call on. It cannot on old kernels,
/// and where a sandbox forbids the system call.
pub fn available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        let wanted = libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED | libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
        let offered = membarrier(libc::MEMBARRIER_CMD_QUERY);
        let available = offered >= 0
            && offered & libc::c_long::from(wanted) == libc::c_long::from(wanted)
            && membarrier(libc::MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
        if !available {
            log::debug!("no membarrier system call here: every doorbell takes a fence");
        }
        available
    })
}

/// The light side: orders what was written before it and what is read after it, provided that the
/// other side uses [`heavy`], as `paired` says.
#[inline]
pub fn light(paired: bool) {
    match paired {
        true => compiler_fence(Ordering::SeqCst),
        false => fence(Ordering::SeqCst),
    }
}

/// The heavy side.
pub fn heavy() {
    fence(Ordering::SeqCst);
    if available() && membarrier(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0 {
        // It was offered, so it can only fail for want of memory: trying again is all there is.
        while membarrier(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0 {
            std::thread::yield_now();
        }
    }
}
