//! Copies between symmetric memory and that of the program.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__cpuid, __cpuid_count};
#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

/// Copies `len` bytes, which may be 0. The ranges may overlap. Up to 16 bytes are copied by one or two moves, so that an
/// aligned element of 1, 2, 4 or 8 bytes is never seen in parts by a PE that waits for it.
///
/// # Safety
/// `from` must be readable and `to` writable for `len` bytes.
#[inline(always)]
pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    /// Copies the first and the last `N` of `len` bytes.
    #[inline(always)]
    unsafe fn ends<const N: usize>(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: the caller guarantees `len` bytes and `N <= len <= 2 N`; both parts are read before any is written.
        unsafe {
            let first = from.cast::<[u8; N]>().read();
            let last = from.add(len - N).cast::<[u8; N]>().read();
            to.cast::<[u8; N]>().write(first);
            to.add(len - N).cast::<[u8; N]>().write(last);
        }
    }
    // SAFETY: each arm guarantees the lengths that `ends` needs; the caller guarantees both ranges.
    unsafe {
        match len {
            8 => to.cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()),
            4 => to.cast::<[u8; 4]>().write(from.cast::<[u8; 4]>().read()),
            0 => {}
            1 => to.write(from.read()),
            2 => to.cast::<[u8; 2]>().write(from.cast::<[u8; 2]>().read()),
            3 => std::ptr::copy(from, to, 3),
            5..=7 => ends::<4>(from, to, len),
            9..=16 => ends::<8>(from, to, len),
            17..=32 => ends::<16>(from, to, len),
            _ if len >= LARGE => copy_large(from, to, len),
            _ => std::ptr::copy(from, to, len),
        }
    }
}

/// Size from which a copy may be a string copy, bytes.
const LARGE: usize = 256 << 10;

/// Copies by the processor's string copy if that is fast: it then reads no lines that it overwrites. glibc's copy uses it
/// below the size of a cache only (AMD EPYC, glibc 2.36).
///
/// # Safety
/// As for [`copy`].
#[cold]
#[inline(never)]
unsafe fn copy_large(from: *const u8, to: *mut u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    if has_fast_string_copy() && (to as usize).wrapping_sub(from as usize) >= len {
        // SAFETY: the caller's guarantee. The destination does not begin within the source, so bytes are read before they
        // are overwritten.
        return unsafe {
            std::arch::asm!(
                "rep movsb",
                inout("rcx") len => _, inout("rsi") from => _, inout("rdi") to => _,
                options(nostack, preserves_flags)
            )
        };
    }
    // SAFETY: the caller's guarantee.
    unsafe { std::ptr::copy(from, to, len) };
}

/// Returns true if the processor says that even its short string copies are fast (FSRM).
#[cfg(target_arch = "x86_64")]
fn has_fast_string_copy() -> bool {
    static FAST: OnceLock<bool> = OnceLock::new();
    *FAST.get_or_init(|| __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx >> 4 & 1 == 1)
}
