//! See `ntbring_fuzzing::configuration`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ntbring_fuzzing::configuration::run(data));
