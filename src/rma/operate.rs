//! Arithmetic of accumulate operations on byte slices, independent of where the memory lies.

/// Types of numbers, in the byte order of the machine. The values are those of `NTBRING_TYPE_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Kind {
    Bytes = 0,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
    /// Real and imaginary part, 4 bytes each.
    C32,
    /// Real and imaginary part, 8 bytes each.
    C64,
}

/// Operations on a number `a` and its operand `b`. The values are those of `NTBRING_OP_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// a + b
    Sum = 0,
    /// a * b
    Product,
    /// The larger one of a and b
    Max,
    /// The smaller one of a and b
    Min,
    /// 1 if both are not 0, else 0
    And,
    /// 1 if one is not 0, else 0
    Or,
    /// 1 if exactly one is not 0, else 0
    Xor,
    /// a & b
    BitAnd,
    /// a | b
    BitOr,
    /// a ^ b
    BitXor,
    /// b
    Replace,
    /// a
    Keep,
}

impl Kind {
    /// All variants, in the order of their values.
    pub const ALL: [Kind; 13] = {
        use Kind::*;
        [Bytes, I8, U8, I16, U16, I32, U32, I64, U64, F32, F64, C32, C64]
    };

    /// Returns the variant with this value; None if there is none.
    pub fn parse(value: u8) -> Option<Kind> {
        Self::ALL.get(value as usize).copied()
    }

    /// Returns the size of a number, bytes.
    pub fn size(self) -> usize {
        match self {
            Kind::Bytes | Kind::I8 | Kind::U8 => 1,
            Kind::I16 | Kind::U16 => 2,
            Kind::I32 | Kind::U32 | Kind::F32 => 4,
            Kind::I64 | Kind::U64 | Kind::F64 | Kind::C32 => 8,
            Kind::C64 => 16,
        }
    }
}

impl Op {
    /// All variants, in the order of their values.
    pub const ALL: [Op; 12] = {
        use Op::*;
        [Sum, Product, Max, Min, And, Or, Xor, BitAnd, BitOr, BitXor, Replace, Keep]
    };

    /// Returns the variant with this value; None if there is none.
    pub fn parse(value: u8) -> Option<Op> {
        Self::ALL.get(value as usize).copied()
    }

    /// Returns true if the operation is defined for numbers of this kind.
    pub fn takes(self, kind: Kind) -> bool {
        match self {
            Op::Replace | Op::Keep => true,
            Op::BitAnd | Op::BitOr | Op::BitXor => !matches!(kind, Kind::F32 | Kind::F64 | Kind::C32 | Kind::C64),
            Op::Sum | Op::Product => kind != Kind::Bytes,
            Op::Max | Op::Min | Op::And | Op::Or | Op::Xor => !matches!(kind, Kind::Bytes | Kind::C32 | Kind::C64),
        }
    }
}

/// Applies `f` to each pair of numbers of type `$t`.
macro_rules! each {
    ($t:ty, $to:expr, $from:expr, $f:expr) => {{
        const SIZE: usize = std::mem::size_of::<$t>();
        for (a, b) in $to.chunks_exact_mut(SIZE).zip($from.chunks_exact(SIZE)) {
            let number = |bytes: &[u8]| <$t>::from_ne_bytes(bytes.try_into().expect("its size"));
            let f: fn($t, $t) -> $t = $f;
            let result = f(number(a), number(b));
            a.copy_from_slice(&result.to_ne_bytes());
        }
    }};
}

macro_rules! integers {
    ($t:ty, $op:expr, $to:expr, $from:expr) => {
        match $op {
            Op::Sum => each!($t, $to, $from, |a, b| a.wrapping_add(b)),
            Op::Product => each!($t, $to, $from, |a, b| a.wrapping_mul(b)),
            Op::Max => each!($t, $to, $from, |a, b| a.max(b)),
            Op::Min => each!($t, $to, $from, |a, b| a.min(b)),
            Op::And => each!($t, $to, $from, |a, b| (a != 0 && b != 0) as $t),
            Op::Or => each!($t, $to, $from, |a, b| (a != 0 || b != 0) as $t),
            Op::Xor => each!($t, $to, $from, |a, b| ((a != 0) != (b != 0)) as $t),
            Op::BitAnd => each!($t, $to, $from, |a, b| a & b),
            Op::BitOr => each!($t, $to, $from, |a, b| a | b),
            Op::BitXor => each!($t, $to, $from, |a, b| a ^ b),
            Op::Replace | Op::Keep => {}
        }
    };
}

macro_rules! floats {
    ($t:ty, $op:expr, $to:expr, $from:expr) => {
        match $op {
            Op::Sum => each!($t, $to, $from, |a, b| a + b),
            Op::Product => each!($t, $to, $from, |a, b| a * b),
            // As in MPICH if an operand is NaN.
            Op::Max => each!($t, $to, $from, |a, b| if a > b { a } else { b }),
            Op::Min => each!($t, $to, $from, |a, b| if a < b { a } else { b }),
            Op::And => each!($t, $to, $from, |a, b| (a != 0.0 && b != 0.0) as u8 as $t),
            Op::Or => each!($t, $to, $from, |a, b| (a != 0.0 || b != 0.0) as u8 as $t),
            Op::Xor => each!($t, $to, $from, |a, b| ((a != 0.0) != (b != 0.0)) as u8 as $t),
            _ => {}
        }
    };
}

macro_rules! complex {
    ($t:ty, $op:expr, $to:expr, $from:expr) => {{
        const PART: usize = std::mem::size_of::<$t>();
        let number = |bytes: &[u8]| <$t>::from_ne_bytes(bytes.try_into().expect("its size"));
        for (a, b) in $to.chunks_exact_mut(2 * PART).zip($from.chunks_exact(2 * PART)) {
            let (re, im) = (number(&a[..PART]), number(&a[PART..]));
            let (b_re, b_im) = (number(&b[..PART]), number(&b[PART..]));
            let (re, im) = match $op {
                Op::Sum => (re + b_re, im + b_im),
                Op::Product => (re * b_re - im * b_im, re * b_im + im * b_re),
                _ => (re, im),
            };
            a[..PART].copy_from_slice(&re.to_ne_bytes());
            a[PART..].copy_from_slice(&im.to_ne_bytes());
        }
    }};
}

/// Accumulates the numbers `from` into the numbers `to`, which have the same count. Nothing happens if the operation is
/// not defined for numbers of this kind.
pub fn accumulate(op: Op, kind: Kind, to: &mut [u8], from: &[u8]) {
    if op == Op::Replace {
        return to.copy_from_slice(from);
    }
    if op == Op::Keep || !op.takes(kind) {
        return;
    }
    match kind {
        Kind::Bytes | Kind::U8 => integers!(u8, op, to, from),
        Kind::I8 => integers!(i8, op, to, from),
        Kind::I16 => integers!(i16, op, to, from),
        Kind::U16 => integers!(u16, op, to, from),
        Kind::I32 => integers!(i32, op, to, from),
        Kind::U32 => integers!(u32, op, to, from),
        Kind::I64 => integers!(i64, op, to, from),
        Kind::U64 => integers!(u64, op, to, from),
        Kind::F32 => floats!(f32, op, to, from),
        Kind::F64 => floats!(f64, op, to, from),
        Kind::C32 => complex!(f32, op, to, from),
        Kind::C64 => complex!(f64, op, to, from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply<const N: usize>(op: Op, kind: Kind, a: [u8; N], b: [u8; N]) -> [u8; N] {
        let mut both = [a, a].concat();
        accumulate(op, kind, &mut both, &[b, b].concat());
        assert_eq!(both[..N], both[N..], "{op:?} of several {kind:?}");
        both[..N].try_into().unwrap()
    }

    /// Compares every operation on integers of one type with the language's own operators.
    macro_rules! check_integers {
        ($t:ty, $kind:expr) => {
            for a in [0, 1, 2, 100, <$t>::MAX, <$t>::MIN, <$t>::MAX / 3] {
                for b in [0, 1, 3, 77, <$t>::MAX, <$t>::MIN] {
                    let flag = |yes: bool| if yes { 1 } else { 0 };
                    let expected: [$t; 12] = [
                        a.wrapping_add(b),
                        a.wrapping_mul(b),
                        if a > b { a } else { b },
                        if a < b { a } else { b },
                        flag(a != 0 && b != 0),
                        flag(a != 0 || b != 0),
                        flag((a == 0) != (b == 0)),
                        a & b,
                        a | b,
                        a ^ b,
                        b,
                        a,
                    ];
                    for (op, expected) in Op::ALL.into_iter().zip(expected) {
                        assert!(op.takes($kind));
                        let got = <$t>::from_ne_bytes(apply(op, $kind, a.to_ne_bytes(), b.to_ne_bytes()));
                        assert_eq!(got, expected, "{op:?} of {a} and {b} as {:?}", $kind);
                    }
                }
            }
        };
    }

    #[test]
    fn integers_of_every_size_have_every_operation() {
        check_integers!(i8, Kind::I8);
        check_integers!(u8, Kind::U8);
        check_integers!(i16, Kind::I16);
        check_integers!(u16, Kind::U16);
        check_integers!(i32, Kind::I32);
        check_integers!(u32, Kind::U32);
        check_integers!(i64, Kind::I64);
        check_integers!(u64, Kind::U64);
    }

    macro_rules! check_floats {
        ($t:ty, $kind:expr) => {
            for a in [0.0, 1.0, -2.5, 1e30] {
                for b in [0.0, 3.0, -0.5] {
                    let flag = |yes: bool| if yes { 1.0 } else { 0.0 };
                    let bits = [a; 3];
                    let expected: [$t; 12] = [
                        a + b,
                        a * b,
                        a.max(b),
                        a.min(b),
                        flag(a != 0.0 && b != 0.0),
                        flag(a != 0.0 || b != 0.0),
                        flag((a == 0.0) != (b == 0.0)),
                        bits[0],
                        bits[1],
                        bits[2],
                        b,
                        a,
                    ];
                    for (op, expected) in Op::ALL.into_iter().zip(expected) {
                        let got = <$t>::from_ne_bytes(apply(op, $kind, <$t>::to_ne_bytes(a), <$t>::to_ne_bytes(b)));
                        assert_eq!(got, expected, "{op:?} of {a} and {b} as {:?}", $kind);
                    }
                }
            }
        };
    }

    #[test]
    fn floating_point_numbers_have_all_but_the_operations_on_bits() {
        check_floats!(f32, Kind::F32);
        check_floats!(f64, Kind::F64);
        for op in Op::ALL {
            let of_bits = matches!(op, Op::BitAnd | Op::BitOr | Op::BitXor);
            assert_eq!((op.takes(Kind::F32), op.takes(Kind::F64)), (!of_bits, !of_bits));
        }
    }

    #[test]
    fn complex_numbers_are_added_multiplied_and_replaced() {
        let (a, b) = ([1.5, -2.0], [4.0, 0.5]);
        for op in Op::ALL {
            let expected = match op {
                Op::Sum => [5.5, -1.5],
                Op::Product => [7.0, -7.25],
                Op::Replace => b,
                _ => a,
            };
            let wide = |x: [f64; 2]| -> [u8; 16] { x.map(f64::to_ne_bytes).concat().try_into().unwrap() };
            let small = |x: [f64; 2]| -> [u8; 8] { x.map(|v| (v as f32).to_ne_bytes()).concat().try_into().unwrap() };
            assert_eq!(apply(op, Kind::C64, wide(a), wide(b)), wide(expected), "{op:?}");
            assert_eq!(apply(op, Kind::C32, small(a), small(b)), small(expected), "{op:?}");
        }
    }

    #[test]
    fn bytes_have_operations_on_bits_only() {
        for op in Op::ALL {
            let expected = match op {
                Op::BitAnd => 0b1000,
                Op::BitOr => 0b1110,
                Op::BitXor => 0b0110,
                Op::Replace => 0b1010,
                _ => 0b1100,
            };
            assert_eq!(apply(op, Kind::Bytes, [0b1100], [0b1010]), [expected], "{op:?}");
        }
    }

    #[test]
    fn values_are_those_of_their_place_and_no_others_are_accepted() {
        assert!((0..=u8::MAX).all(|v| Kind::parse(v).map_or(v as usize >= Kind::ALL.len(), |k| k as u8 == v)));
        assert!((0..=u8::MAX).all(|v| Op::parse(v).map_or(v as usize >= Op::ALL.len(), |o| o as u8 == v)));
    }
}
