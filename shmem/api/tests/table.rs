//! Numbers of functions, and what the generated texts contain.

use ntbring_shmem_api::types::{Set, TYPES};
use ntbring_shmem_api::{exports, functions, headers, symbols, Function};
use std::collections::BTreeSet;
use std::path::Path;

/// Number of functions of groups with these headings which `only` lets through.
fn count(headings: &[&str], only: impl Fn(&Function) -> bool) -> usize {
    functions().iter().filter(|f| headings.contains(&f.group.heading) && only(f)).count()
}

#[test]
fn numbers_of_functions() {
    let all = |_: &Function| true;
    let rma = ["Remote memory access", "Nonblocking remote memory access"];
    // 10 families of 24 types, of which 8 have 5 sizes, and 4 bytes; each with and without a context.
    assert_eq!(count(&rma, |f| f.of.is_some()), 10 * 24 * 2);
    assert_eq!(count(&rma, |f| f.of.is_none()), (8 * 5 + 4) * 2);
    assert_eq!(count(&["Signals"], |f| f.of.is_some()), 2 * 24 * 2);
    assert_eq!(count(&["Signals"], |f| f.of.is_none()), 2 * (5 + 1) * 2 + 2 + 2 * 2);
    let typed = ["Remote memory access", "Nonblocking remote memory access", "Signals"];
    assert_eq!(count(&typed, |f| f.of.is_some()), 576);

    assert_eq!(count(&["Atomics", "Nonblocking atomics"], all), 458);
    assert_eq!(count(&["Old names of atomics"], all), 30);
    assert_eq!(count(&["Waiting", "Testing"], all), 172);
    assert_eq!(count(&["Old names of waiting"], all), 6);
    assert_eq!(count(&["Collectives"], all), 127);
    assert_eq!(count(&["Reductions", "Scans"], all), 194);
    assert_eq!(count(&["Collectives on active sets"], all), 56);
    assert_eq!(count(&["Start and end"], all), 6);
    assert_eq!(count(&["Processing elements and addresses"], all), 8);
    assert_eq!(count(&["Symmetric memory"], all), 6);
    assert_eq!(count(&["Teams"], all), 8);
    assert_eq!(count(&["Contexts"], all), 6);
    assert_eq!(count(&["Order and completion"], all), 6);
    assert_eq!(count(&["Locks"], all), 3);
    assert_eq!(count(&["Old names"], all), 8);
}

#[test]
fn numbers_of_types() {
    let numbers = [
        (Set::Rma, 24, 14),
        (Set::Standard, 12, 6),
        (Set::Extended, 14, 8),
        (Set::Bitwise, 7, 5),
        (Set::Wait, 14, 8),
        (Set::OldWait, 4, 4),
        (Set::ReduceBits, 14, 9),
        (Set::ReduceOrder, 24, 14),
        (Set::ReduceArithmetic, 26, 16),
        (Set::ActiveBits, 4, 4),
        (Set::ActiveOrder, 7, 7),
        (Set::ActiveArithmetic, 9, 9),
        (Set::OldExtended, 5, 5),
        (Set::OldStandard, 3, 3),
    ];
    assert_eq!(numbers.len(), Set::ALL.len());
    for (set, members, distinct) in numbers {
        assert_eq!(set.members().len(), members, "{set:?}");
        assert_eq!(set.distinct().len(), distinct, "{set:?}");
    }
    assert_eq!(TYPES.len(), 26);
}

#[test]
fn each_symbol_once() {
    let names = symbols();
    let distinct: BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
    assert!(names.is_sorted());
    assert_eq!(names.len(), functions().len() * 2);
    for name in [
        "shmem_put128",
        "pshmem_ctx_putmem_signal_nbi",
        "shmem_ctx_uint64_atomic_fetch_xor_nbi",
        "shmem_complexd_sum_exscan",
        "shmem_longdouble_max_to_all",
        "shmem_ctx_longdouble_g",
        "shmem_ctx_ibget16",
        "shmem_fcollectmem",
        "shmem_alltoalls64",
        "shmem_wait",
        "num_pes",
        "shmemx_heap_info",
        "pshmemx_heap_info",
    ] {
        assert!(names.iter().any(|n| n == name), "{name}");
    }
    assert!(!names.iter().any(|n| n == "my_pe"));
}

#[test]
fn glue_has_all_but_long_double_by_value() {
    let glue = exports();
    let exported: Vec<String> = glue
        .lines()
        .filter_map(|line| line.strip_prefix("pub unsafe extern \"C\" fn "))
        .map(|line| line.split('(').next().unwrap_or_default().to_string())
        .collect();
    let left_out: Vec<String> = symbols().into_iter().filter(|name| !exported.contains(name)).collect();
    let expected = ["shmem_ctx_longdouble_g", "shmem_ctx_longdouble_p", "shmem_longdouble_g", "shmem_longdouble_p"];
    let twins: Vec<String> = expected.iter().map(|name| format!("p{name}")).collect();
    assert_eq!(left_out, [twins, expected.map(String::from).to_vec()].concat());

    for text in [
        "pub unsafe extern \"C\" fn shmem_float_put(dest: *mut f32, source: *const f32, nelems: usize, pe: c_int) {\n    \
         crate::calls::rma::put::<f32>(\"shmem_float_put\", Ctx::DEFAULT, dest, source, nelems, pe)\n",
        "pub unsafe extern \"C\" fn pshmem_ctx_get128(ctx: Ctx, dest: *mut Bits128, source: *const Bits128, \
         nelems: usize, pe: c_int) {\n    \
         crate::calls::rma::get::<Bits128>(\"shmem_ctx_get128\", ctx, dest, source, nelems, pe)\n",
        "crate::calls::collectives::reduce::<ComplexF64, crate::reduce::Sum>(\"shmem_complexd_sum_reduce\", team, dest, ",
        "pub unsafe extern \"C\" fn shmem_ptr(dest: *const c_void, pe: c_int) -> *mut c_void {\n",
        "pub unsafe extern \"C\" fn shmem_pcontrol(level: c_int) {\n",
        "crate::calls::atomics::fetch_add::<c_long>(\"shmem_long_fadd\", Ctx::DEFAULT, dest, value, pe)\n",
    ] {
        assert!(glue.contains(text), "{text}");
    }
}

#[test]
fn committed_headers_are_up_to_date() {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../include");
    for (path, contents) in headers() {
        let committed = std::fs::read_to_string(include.join(path)).unwrap_or_default();
        assert!(
            committed == contents,
            "{path} is old: cargo run -p ntbring-shmem-api --bin shmem-headers -- shmem/include"
        );
    }
}
