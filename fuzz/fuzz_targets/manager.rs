//! See `ntbring_fuzzing::manager`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ntbring_fuzzing::manager::run(data));
