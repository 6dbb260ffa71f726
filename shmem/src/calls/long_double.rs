//! The functions that take or return a `long double` by value, which Rust does not have. On x86-64 it is passed on the
//! stack of the processor, and returned in a register of the floating-point stack.

use super::rma;
use crate::handles::Ctx;
use crate::types::LongDouble;
use std::ffi::c_int;

unsafe extern "C" fn put(dest: *mut LongDouble, pe: c_int, value: *const LongDouble) {
    // SAFETY: the program's guarantee; the number lies on the caller's stack.
    unsafe { rma::put("shmem_longdouble_p", Ctx::DEFAULT, dest, value, 1, pe) }
}

unsafe extern "C" fn ctx_put(ctx: Ctx, dest: *mut LongDouble, pe: c_int, value: *const LongDouble) {
    // SAFETY: as above.
    unsafe { rma::put("shmem_ctx_longdouble_p", ctx, dest, value, 1, pe) }
}

unsafe extern "C" fn get(source: *const LongDouble, pe: c_int, to: *mut LongDouble) {
    // SAFETY: the program's guarantee; `to` lies on the caller's stack.
    unsafe { rma::get("shmem_longdouble_g", Ctx::DEFAULT, to, source, 1, pe) }
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
