//! Atomic operations on mapped memory.

use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// An atomic operation on a word of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
    /// Adds the operand.
    Add,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Replaces the word by the operand.
    Swap,
    /// Only reads the word.
    Fetch,
}

/// A type of 4 or 8 bytes on which atomic operations are possible.
pub trait Word: Copy + PartialEq + 'static {
    /// Size in bytes: 4 or 8.
    const SIZE: usize = size_of::<Self>();
    /// Returns the bits of the value; the upper half is 0 if the size is 4.
    fn bits(self) -> u64;
    /// Returns the value of these bits.
    fn from_bits(bits: u64) -> Self;
}

macro_rules! words {
    ($($t:ty as $bits:ty),*) => {
        $(impl Word for $t {
            #[inline(always)]
            fn bits(self) -> u64 {
                self as $bits as u64
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                bits as $t
            }
        })*
    };
}

words!(i32 as u32, u32 as u32, i64 as u64, u64 as u64, isize as usize, usize as usize);

impl Word for f32 {
    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        f32::from_bits(bits as u32)
    }
}

impl Word for f64 {
    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits()
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        f64::from_bits(bits)
    }
}

macro_rules! apply {
    ($word:expr, $op:expr, $operand:expr) => {{
        let (word, operand) = ($word, $operand);
        match $op {
            AtomicOp::Add => word.fetch_add(operand, SeqCst),
            AtomicOp::And => word.fetch_and(operand, SeqCst),
            AtomicOp::Or => word.fetch_or(operand, SeqCst),
            AtomicOp::Xor => word.fetch_xor(operand, SeqCst),
            AtomicOp::Swap => word.swap(operand, SeqCst),
            AtomicOp::Fetch => word.load(SeqCst),
        }
    }};
}

#[inline(always)]
fn word32<'a>(address: usize) -> &'a AtomicU32 {
    // SAFETY: callers pass addresses of aligned words in mapped symmetric memory, which is accessed atomically only.
    unsafe { AtomicU32::from_ptr(address as *mut u32) }
}

#[inline(always)]
fn word64<'a>(address: usize) -> &'a AtomicU64 {
    // SAFETY: as above.
    unsafe { AtomicU64::from_ptr(address as *mut u64) }
}

/// Performs an operation on the word at an address and returns its previous value.
#[inline(always)]
pub fn operate<W: Word>(address: usize, op: AtomicOp, operand: W) -> W {
    W::from_bits(match W::SIZE {
        4 => apply!(word32(address), op, operand.bits() as u32).into(),
        _ => apply!(word64(address), op, operand.bits()),
    })
}

/// Stores a word at an address after all earlier stores.
#[inline(always)]
pub fn store<W: Word>(address: usize, value: W) {
    match W::SIZE {
        4 => word32(address).store(value.bits() as u32, Release),
        _ => word64(address).store(value.bits(), Release),
    }
}

/// Compare-and-swap of the word at an address. Returns its previous value.
#[inline(always)]
pub fn compare_swap<W: Word>(address: usize, expected: W, new: W) -> W {
    W::from_bits(match W::SIZE {
        4 => {
            let (expected, new) = (expected.bits() as u32, new.bits() as u32);
            word32(address).compare_exchange(expected, new, SeqCst, Relaxed).unwrap_or_else(|now| now).into()
        }
        _ => word64(address).compare_exchange(expected.bits(), new.bits(), SeqCst, Relaxed).unwrap_or_else(|now| now),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_bits() {
        assert_eq!(i32::from_bits((-5i32).bits()), -5);
        assert_eq!(isize::from_bits((-5isize).bits()), -5);
        assert_eq!(Word::bits(-1.5f32) >> 32, 0);
        assert_eq!(<f64 as Word>::from_bits(Word::bits(-0.0f64)).to_bits(), (-0.0f64).to_bits());
    }

    #[test]
    fn operations_touch_only_their_word() {
        let memory = [u64::MAX, 7, u64::MAX];
        let at = std::ptr::from_ref(&memory[1]) as usize;
        let value = || {
            // SAFETY: the address of a live element.
            unsafe { (at as *const u64).read_volatile() }
        };
        assert_eq!((operate(at, AtomicOp::Add, 3i64), value()), (7, 10));
        assert_eq!((operate(at, AtomicOp::Swap, 1.5f64), value()), (<f64 as Word>::from_bits(10), 1.5f64.to_bits()));
        assert_eq!((compare_swap(at + 4, 5u32, 9), value()), (0x3ff8_0000, 1.5f64.to_bits()));
        assert_eq!((compare_swap(at + 4, 0x3ff8_0000u32, 0), value()), (0x3ff8_0000, 0));
        store(at, 12u32);
        assert_eq!((operate(at, AtomicOp::Fetch, 0u64), memory[0], memory[2]), (12, u64::MAX, u64::MAX));
    }
}
