//! Children of a PE by `fork`: they get globals of their own, as without the library.

use super::PAGE;
use crate::fail;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Address and size of the globals that are shared memory; the size is 0 if there are none.
static BASE: AtomicUsize = AtomicUsize::new(0);
static SIZE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Address of a private copy, which a `fork` of this thread passes on to the child; 0: there is none.
    static COPY: AtomicUsize = const { AtomicUsize::new(0) };
}

/// Makes children of this process by `fork` have private globals from now on.
pub fn keep_private_in_children(base: usize, size: usize) {
    BASE.store(base, Ordering::Relaxed);
    SIZE.store(size, Ordering::Relaxed);
}

/// Registers the handlers of `fork`. To be called once, when the library is loaded.
pub fn register_fork_handlers() {
    // SAFETY: the functions are valid for the rest of the process: the library is never unloaded while it has mappings in
    // the place of the program's data.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

/// Copies the pages of the globals that have contents. Without memory the child shares the globals.
unsafe extern "C" fn before() {
    let (base, size) = (BASE.load(Ordering::Relaxed), SIZE.load(Ordering::Relaxed));
    if size == 0 {
        return;
    }
    let (access, how) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: a new mapping; the globals are mapped and readable.
    unsafe {
        let copy = libc::mmap(ptr::null_mut(), size, access, how, -1, 0);
        if copy == libc::MAP_FAILED {
            return fail::say("no memory for the globals of a child, which shares those of the PE");
        }
        let mut has_contents = vec![1u8; size / PAGE];
        libc::mincore(base as *mut c_void, size, has_contents.as_mut_ptr());
        for at in (0..size / PAGE).filter(|&page| has_contents[page] & 1 != 0).map(|page| page * PAGE) {
            ptr::copy_nonoverlapping((base + at) as *const u8, copy.cast::<u8>().add(at), PAGE);
        }
        COPY.with(|to| to.store(copy as usize, Ordering::Relaxed));
    }
}

unsafe extern "C" fn in_parent() {
    let copy = COPY.with(|copy| copy.swap(0, Ordering::Relaxed));
    if copy != 0 {
        // SAFETY: the mapping of `before`.
        unsafe { libc::munmap(copy as *mut c_void, SIZE.load(Ordering::Relaxed)) };
    }
}

/// Moves the copy to the place of the globals.
unsafe extern "C" fn in_child() {
    let copy = COPY.with(|copy| copy.swap(0, Ordering::Relaxed));
    if copy != 0 {
        let (base, size) = (BASE.load(Ordering::Relaxed) as *mut c_void, SIZE.swap(0, Ordering::Relaxed));
        let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: the mapping of `before`, which has the size of the shared one that it replaces.
        unsafe { libc::mremap(copy as *mut c_void, size, size, how, base) };
    }
}
