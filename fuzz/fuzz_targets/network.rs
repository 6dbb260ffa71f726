//! See `ntbring_fuzzing::network`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ntbring_fuzzing::network::run(data));
