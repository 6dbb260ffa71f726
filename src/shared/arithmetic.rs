//! The combination of elements: of those that processors know, here; of others, by the caller.

use ntbring_rma::operate::{Kind, Op};

/// The combination of elements, which must be associative; it may depend on the order.
pub struct Reduction<'a> {
    /// Size of an element, bytes.
    pub element: usize,
    /// The operation and the type of its numbers, if this library knows them.
    pub known: Option<(Op, Kind)>,
    /// Combines `count` elements in front of those at `to`: to = from (op) to.
    pub fold: &'a mut dyn FnMut(*const u8, *mut u8, usize),
}

impl Reduction<'_> {
    /// Stores at `to` the combination of `count` elements at `a` with those at `b`, in this order. `to` may be `b`.
    ///
    /// # Safety
    /// The elements must be readable and those at `to` writable. `to` may be the same address as `a` or `b`; otherwise
    /// the elements must not overlap.
    pub unsafe fn combine(&mut self, to: *mut u8, a: *const u8, b: *const u8, count: usize) {
        // SAFETY: the caller's guarantee.
        unsafe {
            if self.known.is_some_and(|(op, kind)| combine_known(op, kind, to, a, b, count)) {
                return;
            }
            let len = count * self.element;
            if to.cast_const() == a {
                let kept = std::slice::from_raw_parts(a, len).to_vec();
                std::ptr::copy_nonoverlapping(b, to, len);
                return (self.fold)(kept.as_ptr(), to, count);
            }
            if to.cast_const() != b {
                std::ptr::copy_nonoverlapping(b, to, len);
            }
        }
        (self.fold)(a, to, count);
    }
}

/// Applies `f` to each pair of numbers.
///
/// # Safety
/// As [`Reduction::combine`].
#[inline(always)]
unsafe fn each<T: Copy>(to: *mut u8, a: *const u8, b: *const u8, count: usize, f: impl Fn(T, T) -> T) {
    let (to, a, b) = (to.cast::<T>(), a.cast::<T>(), b.cast::<T>());
    // SAFETY: the caller's guarantee. The case of equal addresses is apart, because the compiler forms vectors only if
    // it knows how the elements overlap.
    unsafe {
        if to.cast_const() == b {
            for i in 0..count {
                to.add(i).write_unaligned(f(a.add(i).read_unaligned(), to.add(i).read_unaligned()));
            }
        } else if to.cast_const() == a {
            for i in 0..count {
                to.add(i).write_unaligned(f(to.add(i).read_unaligned(), b.add(i).read_unaligned()));
            }
        } else {
            for i in 0..count {
                to.add(i).write_unaligned(f(a.add(i).read_unaligned(), b.add(i).read_unaligned()));
            }
        }
    }
}

/// Combines elements of a known type, with the widest vectors that this processor has: narrow ones leave less room for
/// loads on their way from another core's cache. Returns false if the operation is left to the caller.
///
/// # Safety
/// As [`Reduction::combine`].
#[multiversion::multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
unsafe fn combine_known(op: Op, kind: Kind, to: *mut u8, a: *const u8, b: *const u8, count: usize) -> bool {
    macro_rules! common {
        ($t:ty, $sum:expr, $product:expr) => {
            match op {
                Op::Sum => each::<$t>(to, a, b, count, $sum),
                Op::Product => each::<$t>(to, a, b, count, $product),
                // The first operand stays if the second is not a number, as in MPICH.
                Op::Max => each::<$t>(to, a, b, count, |a, b| if a > b { a } else { b }),
                Op::Min => each::<$t>(to, a, b, count, |a, b| if a < b { a } else { b }),
                _ => return false,
            }
        };
    }
    macro_rules! integer {
        ($t:ty) => {
            match op {
                Op::BitAnd => each::<$t>(to, a, b, count, |a, b| a & b),
                Op::BitOr => each::<$t>(to, a, b, count, |a, b| a | b),
                Op::BitXor => each::<$t>(to, a, b, count, |a, b| a ^ b),
                _ => common!($t, |a: $t, b: $t| a.wrapping_add(b), |a: $t, b: $t| a.wrapping_mul(b)),
            }
        };
    }
    macro_rules! float {
        ($t:ty) => {
            common!($t, |a: $t, b: $t| a + b, |a: $t, b: $t| a * b)
        };
    }
    // SAFETY: the caller's guarantee.
    unsafe {
        match kind {
            Kind::I8 => integer!(i8),
            Kind::U8 => integer!(u8),
            Kind::I16 => integer!(i16),
            Kind::U16 => integer!(u16),
            Kind::I32 => integer!(i32),
            Kind::U32 => integer!(u32),
            Kind::I64 => integer!(i64),
            Kind::U64 => integer!(u64),
            Kind::F32 => float!(f32),
            Kind::F64 => float!(f64),
            Kind::Bytes | Kind::C32 | Kind::C64 => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combined<T: Copy + Default + PartialEq>(op: Op, kind: Kind, a: &[T], b: &[T]) -> Option<Vec<T>> {
        let n = a.len();
        let run = |to: *mut T, a: *const T, b: *const T| {
            // SAFETY: vectors of `n` elements each.
            unsafe { combine_known(op, kind, to.cast(), a.cast(), b.cast(), n) }
        };
        let mut apart = vec![T::default(); n];
        if !run(apart.as_mut_ptr(), a.as_ptr(), b.as_ptr()) {
            return None;
        }
        let (mut first, mut second) = (a.to_vec(), b.to_vec());
        run(first.as_mut_ptr(), first.as_ptr(), b.as_ptr());
        run(second.as_mut_ptr(), a.as_ptr(), second.as_ptr());
        assert!(apart == first && apart == second);
        Some(apart)
    }

    #[test]
    fn numbers_are_combined_wherever_the_result_lies() {
        let (a, b): (Vec<i32>, Vec<i32>) = (0..37).map(|i| (i * 3 - 40, 100 - 7 * i)).unzip();
        let pairs = || a.iter().zip(&b);
        let is = |op, f: fn(i32, i32) -> i32| {
            assert_eq!(combined(op, Kind::I32, &a, &b), Some(pairs().map(|(&a, &b)| f(a, b)).collect()), "{op:?}");
        };
        is(Op::Sum, |a, b| a + b);
        is(Op::Product, |a, b| a * b);
        is(Op::Max, |a, b| a.max(b));
        is(Op::Min, |a, b| a.min(b));
        is(Op::BitAnd, |a, b| a & b);
        is(Op::BitOr, |a, b| a | b);
        is(Op::BitXor, |a, b| a ^ b);
        assert_eq!(combined(Op::And, Kind::I32, &a, &b), None);
        assert_eq!(combined(Op::Sum, Kind::U8, &[200u8, 1], &[100, 1]), Some(vec![44, 2]));
        assert_eq!(combined(Op::Sum, Kind::F64, &[0.5f64, 1.0], &[1.0, 2.0]), Some(vec![1.5, 3.0]));
        assert_eq!(combined(Op::BitAnd, Kind::F32, &[0.5f32], &[1.0]), None);
    }
}
