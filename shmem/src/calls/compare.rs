//! Comparisons of values in memory that other PEs change.

use crate::fail;
use ntbring_shmem_api::constants::*;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cmp {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
}

impl Cmp {
    /// Returns the comparison with this number. Ends the program if there is none.
    #[inline(always)]
    pub fn of(name: &'static str, cmp: c_int) -> Cmp {
        match cmp {
            SHMEM_CMP_EQ => Cmp::Eq,
            SHMEM_CMP_NE => Cmp::Ne,
            SHMEM_CMP_GT => Cmp::Gt,
            SHMEM_CMP_GE => Cmp::Ge,
            SHMEM_CMP_LT => Cmp::Lt,
            SHMEM_CMP_LE => Cmp::Le,
            _ => fail::call(name, format_args!("cmp: {cmp} is none of the constants SHMEM_CMP_EQ to SHMEM_CMP_LE")),
        }
    }

    /// Returns true if `a` compares so with `b`.
    #[inline(always)]
    pub fn holds<V: PartialOrd>(self, a: V, b: V) -> bool {
        match self {
            Cmp::Eq => a == b,
            Cmp::Ne => a != b,
            Cmp::Gt => a > b,
            Cmp::Ge => a >= b,
            Cmp::Lt => a < b,
            Cmp::Le => a <= b,
        }
    }
}

/// A type for whose values a PE can wait.
pub trait Awaited: Copy + PartialOrd {
    /// Loads the value at an address, after which everything is visible that was written before it.
    ///
    /// # Safety
    /// The address must be that of an aligned value.
    unsafe fn load(at: *const Self) -> Self;
}

macro_rules! awaited {
    ($($t:ty: $atomic:ty),*) => {
        $(impl Awaited for $t {
            #[inline(always)]
            unsafe fn load(at: *const Self) -> Self {
                // SAFETY: aligned as the caller guarantees; all accesses of symmetric words are atomic.
                unsafe { <$atomic>::from_ptr(at.cast_mut().cast()) }.load(Ordering::Acquire) as $t
            }
        })*
    };
}

awaited!(i16: AtomicU16, u16: AtomicU16, i32: AtomicU32, u32: AtomicU32, i64: AtomicU64, u64: AtomicU64);
awaited!(isize: AtomicU64, usize: AtomicU64);
