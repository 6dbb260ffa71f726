//! Errors that end the job: OpenSHMEM has no error codes for most of its functions.

use crate::abi;
use std::ffi::CStr;
use std::fmt::Display;
use std::io::Write;
use std::sync::atomic::{AtomicI32, Ordering};

/// Number of this PE, for messages; -1 before it is known.
pub static PE: AtomicI32 = AtomicI32::new(-1);

/// Ends the job with a message about a call of the program: `name` is the function that it called.
#[cold]
#[inline(never)]
pub fn call(name: &str, what: impl Display) -> ! {
    end(&format!("{name}: {what}"), 1)
}

/// Ends the job with a message.
#[cold]
#[inline(never)]
pub fn fatal(what: impl Display) -> ! {
    end(&what.to_string(), 1)
}

/// Ends the job with the text of the latest error of libntbring.
#[cold]
pub fn ring(doing: &str) -> ! {
    end(&format!("{doing}: {}", ring_error()), 1)
}

/// Returns the text of the calling thread's latest error of libntbring.
pub fn ring_error() -> String {
    // SAFETY: libntbring returns a C string that is valid until the thread's next call.
    unsafe { CStr::from_ptr(abi::ntbring_error_text()) }.to_string_lossy().into_owned()
}

fn end(text: &str, code: i32) -> ! {
    say(text);
    leave(code)
}

/// Prints a message of this PE as one write, so that messages of several PEs do not mix.
pub fn say(text: &str) {
    let line = match PE.load(Ordering::Relaxed) {
        pe if pe < 0 => format!("ntbring: OpenSHMEM: {text}\n"),
        pe => format!("ntbring: OpenSHMEM, PE {pe}: {text}\n"),
    };
    // There is nowhere to report a failure to.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Ends all PEs of the job with an exit code.
pub fn leave(code: i32) -> ! {
    // SAFETY: the call takes a number.
    unsafe { abi::ntbring_pmi_abort(code) };
    // The process manager ends this process, too; exit handlers would wait for other PEs.
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}
