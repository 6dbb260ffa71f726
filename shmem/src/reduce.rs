//! Operations of reductions.

use crate::long_double;
use crate::types::{ComplexF32, ComplexF64, LongDouble};

/// An operation on two values of a type.
pub trait Reduction<T> {
    /// Combines two values.
    fn of(a: T, b: T) -> T;
}

/// A type with a zero.
pub trait Zero {
    /// The zero.
    const ZERO: Self;
}

/// Combines each of `n` values at `to` with that at `from` with the same index.
///
/// # Safety
/// Both must have `n` values, and must not overlap.
#[inline]
pub unsafe fn combine<T: Copy, R: Reduction<T>>(to: *mut T, from: *const T, n: usize) {
    for i in 0..n {
        // SAFETY: the caller's guarantee.
        unsafe { to.add(i).write(R::of(to.add(i).read(), from.add(i).read())) };
    }
}

/// Bitwise and.
pub struct And;
/// Bitwise or.
pub struct Or;
/// Bitwise exclusive or.
pub struct Xor;
/// The larger value.
pub struct Max;
/// The smaller value.
pub struct Min;
/// The sum.
pub struct Sum;
/// The product.
pub struct Prod;

macro_rules! operation {
    ($name:ident: $($t:ty)* = $f:expr) => {
        $(impl Reduction<$t> for $name {
            #[inline(always)]
            fn of(a: $t, b: $t) -> $t {
                let f: fn($t, $t) -> $t = $f;
                f(a, b)
            }
        })*
    };
}

operation!(And: u8 i8 u16 i16 u32 i32 u64 i64 usize isize = |a, b| a & b);
operation!(Or: u8 i8 u16 i16 u32 i32 u64 i64 usize isize = |a, b| a | b);
operation!(Xor: u8 i8 u16 i16 u32 i32 u64 i64 usize isize = |a, b| a ^ b);
operation!(Max: u8 i8 u16 i16 u32 i32 u64 i64 usize isize f32 f64 = |a, b| if a > b { a } else { b });
operation!(Min: u8 i8 u16 i16 u32 i32 u64 i64 usize isize f32 f64 = |a, b| if a < b { a } else { b });
operation!(Sum: u8 i8 u16 i16 u32 i32 u64 i64 usize isize = |a, b| a.wrapping_add(b));
operation!(Prod: u8 i8 u16 i16 u32 i32 u64 i64 usize isize = |a, b| a.wrapping_mul(b));
operation!(Sum: f32 f64 = |a, b| a + b);
operation!(Prod: f32 f64 = |a, b| a * b);
operation!(Max: LongDouble = |a, b| if long_double::is_less(b, a) { a } else { b });
operation!(Min: LongDouble = |a, b| if long_double::is_less(a, b) { a } else { b });
operation!(Sum: LongDouble = long_double::sum);
operation!(Prod: LongDouble = long_double::product);

macro_rules! complex {
    ($($t:ident)*) => {
        $(operation!(Sum: $t = |a, b| $t(a.0 + b.0, a.1 + b.1));
        operation!(Prod: $t = |a, b| $t(a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0));

        impl Zero for $t {
            const ZERO: $t = $t(0.0, 0.0);
        })*
    };
}

complex!(ComplexF32 ComplexF64);

macro_rules! zero {
    ($($t:ty = $zero:expr;)*) => {
        $(impl Zero for $t {
            const ZERO: $t = $zero;
        })*
    };
}

zero! {
    u8 = 0; i8 = 0; u16 = 0; i16 = 0; u32 = 0; i32 = 0; u64 = 0; i64 = 0; usize = 0; isize = 0;
    f32 = 0.0; f64 = 0.0; LongDouble = LongDouble([0; 16]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_combined_in_place() {
        let mut values = [1i8, 100, -3];
        // SAFETY: arrays of three values.
        unsafe { combine::<i8, Sum>(values.as_mut_ptr(), [1, 100, 3].as_ptr(), 3) };
        assert_eq!(values, [2, -56, 0]);
        // SAFETY: as above.
        unsafe { combine::<i8, Max>(values.as_mut_ptr(), [1, 0, 1].as_ptr(), 3) };
        assert_eq!(values, [2, 0, 1]);
        assert_eq!(Prod::of(ComplexF64(1.0, 2.0), ComplexF64(3.0, -1.0)), ComplexF64(5.0, 5.0));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn long_doubles_are_computed_with_64_bits() {
        let of = |x: f64| long_double::from_f64(x);
        // 2^63 + 1 needs all 64 bits of the significand.
        let sum = Sum::of(of(9_223_372_036_854_775_808.0), of(1.0));
        assert_eq!(sum.0[..10], [1, 0, 0, 0, 0, 0, 0, 0x80, 0x3e, 0x40]);
        assert_eq!(Prod::of(of(-3.0), of(2.5)), of(-7.5));
        assert_eq!((Max::of(of(-3.0), of(2.5)), Min::of(of(-3.0), of(2.5))), (of(2.5), of(-3.0)));
        assert_eq!(Sum::of(LongDouble::ZERO, of(2.0)), of(2.0));
    }
}
