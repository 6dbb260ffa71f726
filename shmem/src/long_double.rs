//! Arithmetic of `long double`, which Rust does not have. On x86-64 it is a number of 80 bits in a register of the
//! floating-point stack.

use crate::types::LongDouble;
use std::arch::asm;

#[cfg(not(target_arch = "x86_64"))]
compile_error!("long double is implemented for x86-64 only");

/// Defines a function of two numbers by an instruction that combines the two top registers.
macro_rules! binary {
    ($name:ident, $instruction:literal) => {
        /// Combines two numbers.
        pub fn $name(a: LongDouble, b: LongDouble) -> LongDouble {
            let mut result = LongDouble([0; 16]);
            // SAFETY: reads two numbers and writes one, all local; leaves the floating-point stack as it was.
            unsafe {
                asm!(
                    "fld tbyte ptr [{a}]",
                    "fld tbyte ptr [{b}]",
                    $instruction,
                    "fstp tbyte ptr [{result}]",
                    a = in(reg) &a, b = in(reg) &b, result = in(reg) &mut result,
                    out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                    out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                    options(nostack),
                );
            }
            result
        }
    };
}

binary!(sum, "faddp st(1), st");
binary!(product, "fmulp st(1), st");

/// Returns true if `a < b`.
pub fn is_less(a: LongDouble, b: LongDouble) -> bool {
    let less: u8;
    // SAFETY: reads two local numbers; leaves the floating-point stack as it was.
    unsafe {
        asm!(
            "fld tbyte ptr [{a}]",
            "fld tbyte ptr [{b}]",
            "fcomip st, st(1)",
            "fstp st(0)",
            "seta {less}",
            a = in(reg) &a, b = in(reg) &b, less = out(reg_byte) less,
            out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
            out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            options(nostack),
        );
    }
    less != 0
}

/// Converts a number.
#[cfg(test)]
pub fn from_f64(x: f64) -> LongDouble {
    let mut result = LongDouble([0; 16]);
    // SAFETY: reads and writes local numbers; leaves the floating-point stack as it was.
    unsafe {
        asm!(
            "fld qword ptr [{x}]",
            "fstp tbyte ptr [{result}]",
            x = in(reg) &x, result = in(reg) &mut result,
            out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
            out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            options(nostack),
        );
    }
    result
}
