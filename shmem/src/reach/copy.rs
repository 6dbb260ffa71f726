//! Copies between symmetric memory and that of the program.

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
            _ => std::ptr::copy(from, to, len),
        }
    }
}
