//! Asymmetric memory barriers. The side that goes to sleep executes the `membarrier` system call, which makes every
//! processor that runs one of the job's processes execute a memory barrier. The side that rings a doorbell then needs
//! no fence, which would be the most expensive part of sending a message.

use std::sync::atomic::{compiler_fence, fence, Ordering};
use std::sync::OnceLock;

fn membarrier(command: libc::c_int) -> libc::c_long {
    // SAFETY: the system call takes three integers and no pointers.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}

/// Returns true if this process can use `membarrier`; the first call registers it. False on old kernels
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
            log::debug!("the membarrier system call is not available: every doorbell ring executes a fence");
        }
        available
    })
}

/// The cheap side of the barrier: orders stores before it and loads after it. If `paired` is true, the other side is
/// known to use [`heavy`] with `membarrier`, and this is only a compiler fence; otherwise it is a full fence.
#[inline]
pub fn light(paired: bool) {
    match paired {
        true => compiler_fence(Ordering::SeqCst),
        false => fence(Ordering::SeqCst),
    }
}

/// The expensive side of the barrier: a full fence, and `membarrier` on all processors if it is available.
pub fn heavy() {
    fence(Ordering::SeqCst);
    if available() && membarrier(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0 {
        // The command is supported, so it can fail only for lack of memory: retry until it succeeds.
        while membarrier(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0 {
            std::thread::yield_now();
        }
    }
}
