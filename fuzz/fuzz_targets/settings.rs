//! See `ntbring_fuzzing::settings`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ntbring_fuzzing::settings::run(data));
