//! See `ntbring_fuzzing::link_setup`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ntbring_fuzzing::link_setup::run(data));
