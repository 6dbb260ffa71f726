//! Background threads of the library.

use nix::sys::signal::{pthread_sigmask, SigSet, SigmaskHow};
use std::thread::{Builder, JoinHandle};

/// Stack size of a thread, bytes.
const STACK: usize = 256 << 10;

/// Starts a thread with all signals blocked from its start: signals are handled by the application's threads.
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
