//! See `ntbring_fuzzing::neighbour`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ntbring_fuzzing::neighbour::run(data));
