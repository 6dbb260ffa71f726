//! Kinds of memory mapping and the store fence that each kind needs.

#[cfg(loom)]
use loom::sync::atomic::{fence, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{fence, Ordering};

/// Kind of a mapping: the way in which stores to it reach memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mapping {
    /// Stores go through coherent caches, as for memory of this machine.
    #[default]
    Coherent,
    /// Stores go through the processor's write-combining buffers, which may hold and reorder them until a fence.
    WriteCombining,
    /// Each store is issued by itself, in program order.
    Uncached,
}

impl Mapping {
    /// Orders stores: all stores before the call become visible before any store after it.
    #[inline]
    pub fn fence(self) {
        match self {
            Mapping::Coherent => fence(Ordering::Release),
            Mapping::WriteCombining | Mapping::Uncached => drain(),
        }
    }
}

/// Drains the write-combining buffers. On x86-64 `fence(Release)` emits no instruction; only `sfence` drains them.
#[cfg(all(target_arch = "x86_64", not(loom)))]
#[inline]
fn drain() {
    fence(Ordering::Release);
    // SAFETY: every x86-64 processor has SSE, and `sfence` reads and writes no memory.
    unsafe { std::arch::x86_64::_mm_sfence() }
}

/// Orders stores for devices, too (`dmb oshst`, outer shareable): `fence(Release)` orders them among processors only.
#[cfg(all(target_arch = "aarch64", not(loom)))]
#[inline]
fn drain() {
    fence(Ordering::Release);
    // SAFETY: the instruction orders stores and changes no register or memory.
    unsafe { std::arch::asm!("dmb oshst", options(nostack, preserves_flags)) }
}

/// Executes a sequentially consistent fence, the strongest one, on all other architectures.
#[cfg(any(loom, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[inline]
fn drain() {
    fence(Ordering::SeqCst);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{ForeignBytes, InWindow, OutWindow, Region};

    #[test]
    fn only_coherent_windows_take_a_message_without_fences() {
        for mapping in [Mapping::Coherent, Mapping::WriteCombining, Mapping::Uncached] {
            let memory = Region::anonymous(256);
            let window = OutWindow::mapped(memory.clone(), mapping);
            let parts = [window.clone(), window.part(64, 128)];
            for part in &parts {
                let deposited = part.deposit(None, 0, 7, &[1; 8], ForeignBytes::EMPTY);
                assert_eq!(deposited, mapping == Mapping::Coherent, "{mapping:?}");
                part.write_bytes(8, &[2; 8]);
                part.fence();
                part.store(0, 9);
                part.fence();
            }
            let incoming = InWindow::new(memory);
            for at in [0, 64] {
                assert_eq!((incoming.load(at), incoming.load(at + 8)), (9, u64::from_le_bytes([2; 8])));
            }
        }
    }

    #[test]
    fn bytes_arrive_behind_a_bridge_whatever_their_place_and_number() {
        let bytes: Vec<u8> = (1..=200).collect();
        for (at, from, len) in
            (0..9).flat_map(|at| (0..9).flat_map(move |from| [0, 1, 7, 8, 9, 64, 151].map(|len| (at, from, len))))
        {
            let memory = Region::anonymous(512);
            let window = OutWindow::mapped(memory.clone(), Mapping::Uncached);
            window.write_bytes(16 + at, &bytes[from..from + len]);
            window.fill(256 + at, len + 3, |room| {
                // SAFETY: there is room for `len` bytes.
                unsafe { room.address().copy_from_nonoverlapping(bytes[from..].as_ptr(), len) };
                len
            });
            let mut found = vec![0; 512];
            InWindow::new(memory.clone()).read(0, &mut found);
            let mut expected = vec![0; 512];
            expected[16 + at..][..len].copy_from_slice(&bytes[from..][..len]);
            expected[256 + at..][..len].copy_from_slice(&bytes[from..][..len]);
            assert_eq!(found, expected, "{at} {from} {len}");
        }
    }

    #[test]
    fn elements_are_written_where_they_belong_in_every_kind_of_mapping() {
        let bytes: Vec<u8> = (1..=100).collect();
        for mapping in [Mapping::Coherent, Mapping::WriteCombining, Mapping::Uncached] {
            for (offset, len) in (0..16).flat_map(|offset| (0..=100).map(move |len| (offset, len))) {
                let memory = Region::anonymous(128);
                OutWindow::mapped(memory.clone(), mapping).write_elements(offset, ForeignBytes::from(&bytes[..len]));
                let (mut all, mut expected) = ([0; 128], [0; 128]);
                InWindow::new(memory).read(0, &mut all);
                expected[offset..offset + len].copy_from_slice(&bytes[..len]);
                assert_eq!(all, expected, "{len} bytes at {offset}, {mapping:?}");
            }
        }
    }
}
