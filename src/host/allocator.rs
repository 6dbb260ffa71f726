//! The C library's allocator.

/// Largest allocation that is reused instead of mapped anew, bytes: glibc's own limit for adapting this threshold.
#[cfg(target_env = "gnu")]
const REUSED_MAX: i32 = 32 << 20;

/// Lets the process keep up to 64 MiB of freed memory, so that temporary buffers, which MPI allocates and frees in each
/// call, are not returned to the kernel and cleared page by page in the next call.
///
/// glibc does the same for a program that has freed 32 MiB at once. A choice of the user
/// (`MALLOC_TRIM_THRESHOLD_`, `MALLOC_MMAP_THRESHOLD_`, `GLIBC_TUNABLES`) remains; other C libraries are left as they are.
pub fn keep_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        let chosen = ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"];
        if chosen.iter().any(|name| std::env::var_os(name).is_some()) {
            return;
        }
        // SAFETY: the function takes no pointer, and may be called at any time.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, REUSED_MAX);
            libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * REUSED_MAX);
        }
    }
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;
    use nix::sys::resource::{getrusage, UsageWho};
    use std::hint::black_box;

    fn faults() -> i64 {
        getrusage(UsageWho::RUSAGE_THREAD).unwrap().minor_page_faults()
    }

    #[test]
    fn temporary_buffers_are_not_faulted_in_again() {
        keep_freed_memory();
        let use_two = || drop(black_box([vec![1u8; 1 << 20], vec![2u8; 3 << 20]]));
        use_two();
        let before = faults();
        (0..10).for_each(|_| use_two());
        assert!(faults() - before < 1024, "{} page faults for ten times 1024 pages", faults() - before);
    }
}
