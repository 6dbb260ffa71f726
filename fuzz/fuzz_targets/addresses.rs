//! See `ntbring_fuzzing::addresses`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ntbring_fuzzing::addresses::run(data));
