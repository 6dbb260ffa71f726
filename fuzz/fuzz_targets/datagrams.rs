//! See `ntbring_fuzzing::datagrams`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ntbring_fuzzing::datagrams::run(data));
