//! See `ntbring_fuzzing::window`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ntbring_fuzzing::window::run(data));
