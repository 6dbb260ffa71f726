//! See `ntbring_fuzzing::lane`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ntbring_fuzzing::lane::run(data));
