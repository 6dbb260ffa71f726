//! See `ntbring_fuzzing::packet`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ntbring_fuzzing::packet::run(data));
