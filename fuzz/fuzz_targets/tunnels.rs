//! See `ntbring_fuzzing::tunnels`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ntbring_fuzzing::tunnels::run(data));
