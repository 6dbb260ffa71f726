//! Any environment.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ntbring_settings::{Settings, TABLE};

fuzz_target!(|vars: Vec<(Option<u8>, String, String)>| {
    let named = vars.into_iter().map(|(known, name, value)| match known {
        Some(i) => (TABLE[i as usize % TABLE.len()].name.to_string(), value),
        None => (name, value),
    });
    match Settings::from_vars(named) {
        Ok(s) => {
            assert!(s.window.is_none_or(|w| w % 4096 == 0 && w >= 64 << 10) && s.chunk.is_none_or(|c| c >= 64));
        }
        Err(error) => assert!(error.to_string().contains("NTBRING_")),
    }
});
