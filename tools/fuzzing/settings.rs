//! Any environment.

use arbitrary::{Arbitrary, Unstructured};
use ntbring_endpoint::settings::{Settings, TABLE};

/// Runs one input.
pub fn run(data: &[u8]) {
    let Ok(vars) = <Vec<(Option<u8>, String, String)>>::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let names: Vec<&str> = TABLE.settings().map(|setting| setting.name).collect();
    let named = vars.into_iter().map(|(known, name, value)| match known {
        Some(i) => (names[i as usize % names.len()].to_string(), value),
        None => (name, value),
    });
    match Settings::from_vars(named) {
        Ok(s) => {
            assert!(
                s.ring.window.is_none_or(|w| w % 4096 == 0 && w >= 64 << 10) && s.ring.chunk.is_none_or(|c| c >= 64)
            );
        }
        Err(error) => assert!(error.to_string().contains("NTBRING_")),
    }
}
