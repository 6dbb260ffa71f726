//! See `ntbring_fuzzing::agent_socket`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ntbring_fuzzing::agent_socket::run(data));
