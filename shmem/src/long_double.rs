//! `long double`, which Rust does not have: arithmetic, and the functions that take or return one by value. On x86-64 it
//! is a number of 80 bits in a register of the floating-point stack, and is passed on the stack of the processor.

use crate::contexts::DEFAULT;
use crate::handles::Ctx;
use crate::rma;
use crate::types::LongDouble;
use std::arch::asm;
use std::ffi::c_int;

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

unsafe extern "C" fn put(dest: *mut LongDouble, pe: c_int, value: *const LongDouble) {
    // SAFETY: the program's guarantee; the number lies on the caller's stack.
    unsafe { rma::put("shmem_longdouble_p", DEFAULT, dest, value, 1, pe) }
}

unsafe extern "C" fn ctx_put(ctx: Ctx, dest: *mut LongDouble, pe: c_int, value: *const LongDouble) {
    // SAFETY: as above.
    unsafe { rma::put("shmem_ctx_longdouble_p", ctx, dest, value, 1, pe) }
}

unsafe extern "C" fn get(source: *const LongDouble, pe: c_int, to: *mut LongDouble) {
    // SAFETY: the program's guarantee; `to` lies on the caller's stack.
    unsafe { rma::get("shmem_longdouble_g", DEFAULT, to, source, 1, pe) }
}

unsafe extern "C" fn ctx_get(ctx: Ctx, source: *const LongDouble, pe: c_int, to: *mut LongDouble) {
    // SAFETY: as above.
    unsafe { rma::get("shmem_ctx_longdouble_g", ctx, to, source, 1, pe) }
}

/// Defines exports of `void p(long double *dest, long double value, int pe)` and its kin: the value lies above the
/// return address; its address becomes the last argument.
macro_rules! putting {
    ($($name:ident: $register:literal, $body:ident;)*) => {
        $(#[doc = "See the specification of OpenSHMEM."]
        #[no_mangle]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            std::arch::naked_asm!(concat!("lea ", $register, ", [rsp + 8]"), "jmp {body}", body = sym $body)
        })*
    };
}

putting! {
    shmem_longdouble_p: "rdx", put;
    pshmem_longdouble_p: "rdx", put;
    shmem_ctx_longdouble_p: "rcx", ctx_put;
    pshmem_ctx_longdouble_p: "rcx", ctx_put;
}

/// Defines exports of `long double g(const long double *source, int pe)` and its kin: the address of a place on the
/// stack becomes the last argument, and the number there is returned in the top register.
macro_rules! getting {
    ($($name:ident: $register:literal, $body:ident;)*) => {
        $(#[doc = "See the specification of OpenSHMEM."]
        #[no_mangle]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                "sub rsp, 24",
                concat!("mov ", $register, ", rsp"),
                "call {body}",
                "fld tbyte ptr [rsp]",
                "add rsp, 24",
                "ret",
                body = sym $body,
            )
        })*
    };
}

getting! {
    shmem_longdouble_g: "rdx", get;
    pshmem_longdouble_g: "rdx", get;
    shmem_ctx_longdouble_g: "rcx", ctx_get;
    pshmem_ctx_longdouble_g: "rcx", ctx_get;
}
