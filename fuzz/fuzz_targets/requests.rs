//! See `ntbring_fuzzing::requests`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ntbring_fuzzing::requests::run(data));
