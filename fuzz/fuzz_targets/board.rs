//! See `ntbring_fuzzing::board`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ntbring_fuzzing::board::run(data));
