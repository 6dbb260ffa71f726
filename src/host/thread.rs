//! Threads of our own.

use nix::sys::signal::{pthread_sigmask, SigSet, SigmaskHow};
use std::thread::{Builder, JoinHandle};

/// Bytes of a stack.
const STACK: usize = 256 << 10;

/// Starts a thread with all signals blocked from its birth: they belong to the application.
pub fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    let mut before = SigSet::empty();
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
    let thread = Builder::new().name(name.into()).stack_size(STACK).spawn(run);
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    thread
}
