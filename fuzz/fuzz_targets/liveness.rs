//! See `ntbring_fuzzing::liveness`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ntbring_fuzzing::liveness::run(data));
